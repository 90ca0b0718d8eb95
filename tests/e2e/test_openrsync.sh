#!/bin/sh
# macOS has another program named rsync: rsync 3 is found later in PATH, otherwise the error says what to install.
. "$(dirname -- "$0")/support.sh"

remote sandbox up
system_python
mkdir "$work/macos" "$work/only"
cat >"$work/macos/rsync" <<'END'
#!/bin/sh
if [ "$*" = --version ]; then
  echo 'openrsync: protocol version 29, rsync version 2.6.9 compatible'
  exit 0
fi
for option in "$@"; do
  case $option in
    -s | --info=* | --no-human-readable | --append-verify)
      echo "rsync: unrecognized option '$option'" >&2
      exit 1
      ;;
  esac
done
exec /usr/bin/rsync "$@"
END
chmod +x "$work/macos/rsync"
echo 'print("hello")' >train.py
PATH="$work/macos:$PATH" remote rsync >"$work/out" 2>"$work/err" || fail "the rsync behind the other one is not found"

# Only the other one: PATH has all programs except rsync.
for folder in $(printf %s "$PATH" | tr : ' '); do
  # find exits with 1 for a circular link
  [ ! -d "$folder" ] || find -L "$folder" -maxdepth 1 -type f ! -name rsync -exec ln -sf -t "$work/only" {} + 2>/dev/null || true
done
ln -s "$work/macos/rsync" "$work/only/rsync"
got=0
PATH="$work/only" remote rsync >"$work/out" 2>"$work/err" || got=$?
[ "$got" != 0 ] || fail "another program was taken for rsync"
grep -q 'not rsync 3, but openrsync' "$work/err" || fail "what is there is not named"
grep -q 'brew install rsync' "$work/err" || fail "it does not say what to install"
