#!/bin/sh
# What the end-to-end tests share; they source it. It makes a project in a work folder and enters it, and when the test
# ends, however that is, the practice servers with all that runs on them and the work folder go.
set -eu
: "${REMOTE:?path of the binary}"
exec </dev/null

work='' sandbox=''
follower='' # process id of what runs in the background
clean_up() { :; } # for a test that makes more: its own one is called when the servers are down
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
XDG_STATE_HOME="$work/state" # what the user has allowed
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
# remote WORDS...: stdout to $work/out, stderr to $work/err
remote() { "$REMOTE" "$@" >"$work/out" 2>"$work/err"; }
# code N WORDS...: `remote WORDS...` must exit with N
code() {
  wanted=$1
  shift
  got=0
  remote "$@" || got=$?
  [ "$got" = "$wanted" ] || fail "exit code $got, not $wanted: $*"
}
# in_background WORDS...: remote, as $follower. Both files are empty before it opens them, so that nobody reads what was there before
in_background() {
  : >"$work/out"
  : >"$work/err"
  "$REMOTE" "$@" >"$work/out" 2>"$work/err" &
  follower=$!
}
# follower_ends N: what runs in the background must exit with N
follower_ends() {
  got=0
  wait "$follower" || got=$?
  follower=
  [ "$got" = "$1" ] || fail "what ran in the background exits with $got, not $1"
}
# until_true WORDS...: until the command succeeds, at most 30 seconds and what it takes itself
until_true() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt 75 ] || fail "waited too long: $*"
    sleep 0.4
  done
}
# has_ended FOLDER: whether the journal in this folder of a job has its end
has_ended() { grep -Eqs '"kind":"(found_)?ended"' "$1/journal.jsonl"; }
# count_ended FOLDER: how many jobs somewhere in this folder have ended
count_ended() { grep -Erl --include=journal.jsonl '"kind":"(found_)?ended"' "$1" | wc -l; }
# have_ended FOLDER COUNT: whether at least so many have
have_ended() { [ "$(count_ended "$1")" -ge "$2" ]; }
# printed TEXT [out|err]: exactly that was printed, by default to stdout
printed() {
  printf '%s' "$1" >"$work/wanted"
  cmp -s "$work/wanted" "$work/${2:-out}" || fail "std${2:-out} is not exactly: $1"
}

# evaluate EXPRESSION: in Python, of the JSON on stdin, called d
evaluate() { python3 -I -S -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
# picks EXPRESSION: of the JSON that the last command printed
picks() { evaluate "$1" <"$work/out"; }
# of_jobs EXPRESSION OPTIONS...: of the list of all jobs
of_jobs() {
  expression=$1
  shift
  "$REMOTE" --quiet job-list --stopped --json "$@" | evaluate "$expression"
}
# job KEY FIELD
job() { of_jobs "[job['$2'] for job in d if job['key'] == $1][0]"; }
# homes: the home folders of the practice servers, a line each
homes() { "$REMOTE" --quiet sandbox status --json | sed -n 's/^ *"home": "\(.*\)",*$/\1/p'; }
# system_python: the servers get no environment of their own
system_python() {
  sed -i '/^python:/,$d' .remote/configs.yaml
  echo 'python: {manager: system}' >>.remote/configs.yaml
}

# all_of SERVER: the ids of all processes of a practice server. (sshd's environment is not to be read.)
all_of() {
  grep -lzE "^(HOME|REMOTE_SANDBOX)=$project/.remote/.*/?$1(/.*)?\$" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3
  cat "$sandbox/$1/sshd.pid"
}
# kill_all PID…: at once, so that none sees another one's end
kill_all() {
  for signal in STOP KILL; do
    for victim; do
      kill -s "$signal" "$victim" 2>/dev/null || true
    done
  done
}
# vanish SERVER: a practice server goes, with everything on it
vanish() {
  there=$(all_of "$1")
  [ "$(echo "$there" | wc -l)" -gt 1 ] || fail "no process of $1 is found"
  # shellcheck disable=SC2086
  kill_all $there
}

# break_links SERVER: the connections to a practice server break. A login has two processes of sshd, the second of which holds the connection; as
# root only since OpenSSH 9.8.
break_links() {
  logins=$(pgrep -P "$(cat "$sandbox/$1/sshd.pid")") || fail "no connection to $1 to cut"
  for login in $logins; do
    # shellcheck disable=SC2046
    kill -KILL "$login" $(pgrep -P "$login" sshd) 2>/dev/null || true
  done
}

mark=$((10000000 + $$)) # for arguments that no other test's processes have
# processes SUFFIX: how many have the argument $mark.SUFFIX (this grep's own is another text)
processes() { grep -lzx "${mark}[.]$1" /proc/[0-9]*/cmdline 2>/dev/null | wc -l; }
# lifelines: the pids of the processes of this test's lifelines, without their watchdogs
lifelines() {
  grep -lx remote-launch /proc/[0-9]*/comm 2>/dev/null | while read -r file; do
    if grep -qaF "$work" "${file%comm}cmdline" 2>/dev/null; then
      file=${file%/comm}
      echo "${file##*/}"
    fi
  done
}
# kill_lifeline PID: together with its watchdog, which would take over; its other children are of no use without it, and on
# a busy machine the watchdog may not have its name yet
kill_lifeline() {
  kill -STOP "$1"
  # shellcheck disable=SC2046
  kill_all "$1" $(pgrep -P "$1")
}
lifelines_are() { [ "$(lifelines | wc -l)" = "$1" ]; }
# lifelines_stand COUNT: those of so many jobs
lifelines_stand() { [ "$(find .remote -path '*/.jobs/*/lifeline' -exec grep -lx ok {} + | wc -l)" -ge "$1" ]; }
