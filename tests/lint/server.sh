#!/bin/sh
# Fails if code that runs on servers executes a text as code, or parses the output of `ls`, `ps` and similar programs:
# another user of the server chooses the names in it. Usage: server.sh SOURCE_DIR
# It also finds redirections of special builtins (`: >FILE`, `exec 9>FILE`): if one fails, a POSIX shell exits, even
# with `||`. With `command` it does not: `command exec 9>FILE || …`.
# Allowed lines are in the table below.
set -eu
cd -- "${1:?source folder}/src/server"

code='(^|[^A-Za-z0-9_.-])(eval($|[^A-Za-z0-9_.-])|trap +"[^"]*\$)'
listing='(^|[;&|({!]|(^|[[:space:]])(then|do|else|if|while))[[:space:]]*(command +)?(ls|ps|lsof|fuser|ss|netstat|pgrep|pidof|pkill|killall|w|who)($| )'
special='(^|[;&|({!]|(^|[[:space:]])(then|do|else|if|while|until))[[:space:]]*(:|\.|exec|eval|export|readonly|trap|unset)([[:space:]]([^;&|#]|[<>]&)*)?[[:space:]][0-9]*(<|>|<>|>>|>\|)[[:space:]]*[^<>&(/[:space:]]'
python='(^|[^A-Za-z0-9_.])(eval|exec|os\.system|os\.popen|pickle\.loads?|marshal\.loads?)\(|shell *= *True'

# FILE|LINE, without leading blanks. The user's own settings are code; the rest prints to no one, uses no foreign names,
# or ends with its program.
allowed() {
  cat <<'END'
lib/environment.sh|eval "$REMOTE_HID_FUNCTIONS" # as `declare -pfx` of the account's shell printed them
lib/environment.sh|eval "[ -z \"\${REMOTE_HID_$se_name+set}\" ] || [ -n \"\${$se_name+set}\" ] || export $se_name=\"\$REMOTE_HID_$se_name\"; unset REMOTE_HID_$se_name"
lib/job.sh|eval "$1"
lib/job.sh|eval "[ -z \"\${$1+set}\" ]" || return 0
lib/job.sh|eval "set --
lib/prologue.sh|eval "$__text"
lib/prologue.sh|eval "[ -n \"\${$__name+set}\" ]" || echo "unset $__name"
lib/prologue.sh|if [ -n "${REMOTE_HID_FUNCTIONS-}" ] && [ -n "$BASH_VERSION" ]; then eval "$REMOTE_HID_FUNCTIONS"; fi
lib/prologue.sh|{ eval "$1"; } >&2 || exit
END
}

find_lines() { # FOLDER_OR_FILE…: prints FILE|LINE for each line that matches a rule
  find "$@" -type f ! -name '*.py' -exec grep -HE -e "$code" -e "$listing" -e "$special" {} + || :
  find "$@" -type f -name '*.py' -exec grep -HE -e "$python" {} + || :
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find_lines lib python | sed -e 's/:[[:space:]]*/|/' -e '/^[^|]*|#/d' | sort -u >"$work/found"
allowed | sort -u >"$work/allowed"

bad=0
if comm -23 "$work/found" "$work/allowed" | grep .; then
  echo "server: the lines above make code of a text, or read a listing. Read one name at a time; if no other user"
  echo "server: can choose what such a line reads, add it to the table in tests/lint/server.sh. With a redirection, write \`command\` before \`:\` or \`exec\`."
  bad=1
fi
if comm -13 "$work/found" "$work/allowed" | grep .; then
  echo "server: the lines above are in the table of tests/lint/server.sh, but not in src/server: take them out of it."
  bad=1
fi

# Tests the rules themselves: each of these lines must be found.
mkdir "$work/proof"
# shellcheck disable=SC2016  # these are texts
printf '%s\n' 'eval "writes_$pid=1"' 'x=1; eval $y' 'ls -l /proc/[0-9]*/fd 2>/dev/null |' 'x=$(ps -eo pid,args)' 'trap "rm $file" EXIT' \
  ': >"$3"' '  [ -n "$x" ] || : >died' 'exec 9>&2 2>"$3"' '  if exec 2<>.note; then' 'if pgrep x; then' '  fuser "$file" | while read -r pid; do' >"$work/proof/sh"
printf '%s\n' 'eval(text)' 'os.system("x")' 'subprocess.run(x, shell=True)' 'pickle.loads(data)' >"$work/proof/python.py"
proofs=$(find_lines "$work/proof" | wc -l)
[ "$proofs" = 15 ] || { echo "server: the rules of tests/lint/server.sh find only $proofs of 15 bad lines"; bad=1; }
[ "$bad" = 1 ] || echo "server: no text of another user is made into code"
exit "$bad"
