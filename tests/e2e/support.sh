#!/bin/sh
# Shared by the end-to-end tests, which source it. It makes a project in a work folder and enters it. However the test
# ends, the practice servers, all of their processes and the work folder are removed.
set -eu
: "${REMOTE:?path of the binary}"
exec </dev/null

work='' sandbox=''
follower='' # process id of the command in the background
clean_up() { :; } # tests may redefine it to clean up more; called when the servers are down
finish() {
  status=$?
  trap '' INT TERM HUP
  set +e
  cd /
  [ -z "$follower" ] || kill -KILL "$follower" 2>/dev/null
  [ ! -d "$sandbox" ] || "$REMOTE" --quiet --project "${sandbox%/.remote/sandbox}" sandbox down
  clean_up
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
work=$(mktemp -d "${TMPDIR:-/tmp}/remote e2e.XXXXXX")
XDG_STATE_HOME="$work/state" # permissions given by the user
export XDG_STATE_HOME
project="$work/my project"
sandbox="$project/.remote/sandbox"
mkdir "$project"
cd "$project"

skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "FAILED: $*" >&2
  for stream in out err; do
    [ -s "$work/$stream" ] || continue
    echo "--- the end of std$stream" >&2
    tail -c 4000 "$work/$stream" | tr -d '\000-\010\013-\037\177' >&2
  done
  [ ! -d "$project/.remote/jobs" ] || "$REMOTE" --quiet --project "$project" job-list --stopped >&2 || true
  exit 1
}
# remote WORDS...: stdout goes to $work/out, stderr to $work/err
remote() { "$REMOTE" "$@" >"$work/out" 2>"$work/err"; }
# code N WORDS...: `remote WORDS...` must exit with N
code() {
  wanted=$1
  shift
  got=0
  remote "$@" || got=$?
  [ "$got" = "$wanted" ] || fail "exit code $got, not $wanted: $*"
}
# in_background WORDS...: runs remote as $follower. Empties both files first, so that no earlier output is read
in_background() {
  : >"$work/out"
  : >"$work/err"
  "$REMOTE" "$@" >"$work/out" 2>"$work/err" &
  follower=$!
}
# follower_ends N: the background command must exit with N
follower_ends() {
  got=0
  wait "$follower" || got=$?
  follower=
  [ "$got" = "$1" ] || fail "what ran in the background exits with $got, not $1"
}
# until_true WORDS...: repeats the command until it succeeds, for at most 30 seconds plus its own time
until_true() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt 75 ] || fail "waited too long: $*"
    sleep 0.4
  done
}
# has_ended FOLDER: whether the journal in this job folder has an end
has_ended() { grep -Eqs '"kind":"(found_)?ended"' "$1/journal.jsonl"; }
# count_ended FOLDER: prints how many jobs below this folder have ended
count_ended() { grep -Erl --include=journal.jsonl '"kind":"(found_)?ended"' "$1" | wc -l; }
# have_ended FOLDER COUNT: whether at least this many have ended
have_ended() { [ "$(count_ended "$1")" -ge "$2" ]; }
# printed TEXT [out|err]: the output was exactly this; default: stdout
printed() {
  printf '%s' "$1" >"$work/wanted"
  cmp -s "$work/wanted" "$work/${2:-out}" || fail "std${2:-out} is not exactly: $1"
}

# evaluate EXPRESSION: evaluates it in Python; d is the JSON from stdin
evaluate() { python3 -I -S -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
# picks EXPRESSION: evaluates it for the JSON output of the last command
picks() { evaluate "$1" <"$work/out"; }
# of_jobs EXPRESSION OPTIONS...: evaluates it for the list of all jobs
of_jobs() {
  expression=$1
  shift
  "$REMOTE" --quiet job-list --stopped --json "$@" | evaluate "$expression"
}
# job KEY FIELD
job() { of_jobs "[job['$2'] for job in d if job['key'] == $1][0]"; }
# homes: prints the home folders of the practice servers, one per line
homes() { "$REMOTE" --quiet sandbox status --json | sed -n 's/^ *"home": "\(.*\)",*$/\1/p'; }
# system_python: the servers use the system's Python instead of their own environments
system_python() {
  sed -i '/^python:/,$d' .remote/configs.yaml
  echo 'python: {manager: system}' >>.remote/configs.yaml
}

# all_of SERVER: prints the ids of all processes of a practice server. (sshd's environment is not readable.)
all_of() {
  grep -lzE "^(HOME|REMOTE_SANDBOX)=$project/.remote/.*/?$1(/.*)?\$" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3
  cat "$sandbox/$1/sshd.pid"
}
# kill_all PID…: kills them at the same time, so that none sees another one end
kill_all() {
  for signal in STOP KILL; do
    for victim; do
      kill -s "$signal" "$victim" 2>/dev/null || true
    done
  done
}
# vanish SERVER: a practice server disappears, with all of its processes
vanish() {
  there=$(all_of "$1")
  [ "$(echo "$there" | wc -l)" -gt 1 ] || fail "no process of $1 is found"
  # shellcheck disable=SC2086
  kill_all $there
}

# break_links SERVER: breaks the connections to a practice server. A login has two sshd processes; the second one holds
# the connection. As root this is only the case since OpenSSH 9.8.
break_links() {
  logins=$(pgrep -P "$(cat "$sandbox/$1/sshd.pid")") || fail "no connection to $1 to cut"
  for login in $logins; do
    # shellcheck disable=SC2046
    kill -KILL "$login" $(pgrep -P "$login" sshd) 2>/dev/null || true
  done
}

mark=$((10000000 + $$)) # for arguments that no other test's processes have
# processes SUFFIX: prints how many have the argument $mark.SUFFIX (the text of this grep itself does not match)
processes() { grep -lzx "${mark}[.]$1" /proc/[0-9]*/cmdline 2>/dev/null | wc -l; }
# lifelines: prints the pids of this test's lifelines, without their watchdogs
lifelines() {
  grep -lx remote-launch /proc/[0-9]*/comm 2>/dev/null | while read -r file; do
    if grep -qaF "$work" "${file%comm}cmdline" 2>/dev/null; then
      file=${file%/comm}
      echo "${file##*/}"
    fi
  done
}
# kill_lifeline PID: also kills its watchdog, which would take over. All of its children are killed, because they are
# useless without it, and on a busy machine the watchdog may not have its name yet
kill_lifeline() {
  kill -STOP "$1"
  # shellcheck disable=SC2046
  kill_all "$1" $(pgrep -P "$1")
}
lifelines_are() { [ "$(lifelines | wc -l)" = "$1" ]; }
# lifelines_stand COUNT: whether this many jobs report a working lifeline
lifelines_stand() { [ "$(find .remote -path '*/.jobs/*/lifeline' -exec grep -lx ok {} + | wc -l)" -ge "$1" ]; }
