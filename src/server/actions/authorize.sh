# Puts one public key into ~/.ssh/authorized_keys, once. Set by the caller:
#   KEY_TYPE  ssh-ed25519 …     KEY_BLOB  its base64     KEY_LINE  the line to add
# Answers with one of these lines, and "@remote1 end":
#   @remote1 added        @remote1 present
#   @remote1 restricted   the key stands there with options before it (from="…", command="…")
#   @remote1 fail REASON  nothing was added
# and before it perhaps "@remote1 open FOLDER": others may write to FOLDER, so a strict sshd will not read the file.
: "${KEY_TYPE:?}" "${KEY_BLOB:?}" "${KEY_LINE:?}" "${HOME:?}"
echo # what a login shell's start files printed may lack its last newline
umask 077
folder=$HOME/.ssh
file=$folder/authorized_keys

fail() {
  printf '@remote1 fail %s\n@remote1 end\n' "$1"
  exit 0
}

# The blanks at the beginning of $rest.
skip_blanks() {
  rest=${rest#"${rest%%[![:space:]]*}"}
}

# The line holds the key: "absent", "present", or "restricted" by options in front. Blanks within quotes are part of
# an option, so that a key named in a command is not taken for an entry.
look() { # look LINE
  rest=$1
  options=
  skip_blanks
  case $rest in
    '#'* | '') return 1 ;;
    "$KEY_TYPE"[[:space:]]*) ;;
    *)
      # Over the options: up to the first blank outside of quotes.
      quoted=no
      while [ -n "$rest" ]; do
        case $rest in
          '\"'*) rest=${rest#??} && continue ;;
          '"'*) if [ "$quoted" = no ]; then quoted=yes; else quoted=no; fi ;;
          [[:space:]]*) [ "$quoted" = yes ] || break ;;
        esac
        rest=${rest#?}
      done
      options=yes
      skip_blanks
      ;;
  esac
  case $rest in
    "$KEY_TYPE"[[:space:]]*) rest=${rest#"$KEY_TYPE"} ;;
    *) return 1 ;;
  esac
  skip_blanks
  case $rest in
    "$KEY_BLOB" | "$KEY_BLOB"[[:space:]]*) [ -n "$options" ] && found=restricted || found=present ;;
    *) return 1 ;;
  esac
}

[ -d "$folder" ] || mkdir "$folder" 2>/dev/null || [ -d "$folder" ] || fail "cannot make $folder"
chmod 700 "$folder" 2>/dev/null || fail "cannot set the permissions of $folder: $(ls -ld "$folder" 2>&1)"
if [ -e "$file" ] && [ ! -f "$file" ]; then
  fail "$file is not a file"
fi
# Servers may share the home folder: one at a time looks and adds.
{ command exec 9>>"$file"; } 2>/dev/null || fail "cannot write $file: $(ls -l "$file" 2>&1)"
if command -v flock >/dev/null 2>&1; then
  flock -w 10 9 2>/dev/null || :
fi
chmod 600 "$file" 2>/dev/null || fail "cannot set the permissions of $file: $(ls -l "$file" 2>&1)"

found=absent
# grep first: of a long file few lines are worth the shell's slow look.
while IFS= read -r line || [ -n "$line" ]; do
  look "$line" && [ "$found" = present ] && break
done <<END
$(grep -F -e "$KEY_BLOB" "$file")
END
if [ "$found" = absent ]; then
  text=$KEY_LINE
  # A last line without its end would swallow ours.
  if [ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ]; then
    text="
$text"
  fi
  { printf '%s\n' "$text" >>"$file"; } 2>/dev/null || fail "cannot write $file: is the disk full?"
  grep -qF -e "$KEY_BLOB" "$file" || fail "what was written to $file is not in it: is the disk full?"
  found=added
  if command -v restorecon >/dev/null 2>&1; then
    restorecon -R "$folder" >/dev/null 2>&1 || :
  fi
fi
case $(ls -ldn "$HOME/.") in
  ?????w* | ????????w*) printf '@remote1 open %s\n' "$HOME" ;;
esac
printf '@remote1 %s\n@remote1 end\n' "$found"
