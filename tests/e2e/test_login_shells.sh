#!/bin/sh
# Servers whose login shells are bash, zsh, fish and tcsh, with startup files that print, fail, exec another shell or
# return early. The practice servers' entry script does what sshd does: SHELL -c COMMAND, with sshd's own variables.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
for shell in bash zsh fish tcsh; do
  command -v $shell >/dev/null 2>&1 || skip "$shell is not installed"
done

# ---- the servers: names, shells, startup files
good="bash-greets bash-execs bash-returns bash-strict zsh fish tcsh"
bad="bash-fails bash-exits"
count=0
for name in $good $bad; do count=$((count + 1)); done
code 0 sandbox up --nodes $count
cat >"$sandbox/entry.sh" <<'ENTRY'
unset REMOTE_SANDBOX_ENTRY SHLVL
cd "$HOME" || exit 1
read -r SHELL <.login-shell
export SHELL
if [ -z "${SSH_ORIGINAL_COMMAND+set}" ]; then
  exec "$SHELL"
fi
command=$SSH_ORIGINAL_COMMAND
unset SSH_ORIGINAL_COMMAND
exec "$SHELL" -c "$command"
ENTRY
system_python
number=0
for name in $good $bad; do
  number=$((number + 1))
  home="$sandbox/node-$number/home"
  command -v "${name%%-*}" >"$home/.login-shell"
  sed -i "s/^  node-$number:/  $name:/" .remote/configs.yaml
  # Each startup file leaves a mark, so that the test knows that it was read; the printed text has no final newline.
  trace='echo read >>~/start-file-was-read'
  greeting='printf "Welcome, it is a nice day\n@remote1\nno newline"; printf "also here" >&2'
  file=.bashrc
  case $name in
    bash-greets) rc="$greeting" ;;
    bash-execs) rc="$greeting; case \$- in *i*) exec zsh ;; esac; false" ;;
    bash-returns) rc='case $- in *i*) ;; *) return 1 ;; esac; export PATH=/nowhere' ;;
    bash-strict) rc="set -e -o noclobber; export CDPATH=/:. GREP_OPTIONS=--color=always; $greeting" ;;
    zsh) file=.zshenv rc=$greeting ;;
    fish) file=.config/fish/config.fish rc="$greeting" ;;
    tcsh) file=.tcshrc rc='printf "Welcome\nno newline"; echo also here >/dev/stderr' ;;
    bash-fails) rc="echo oh no >&2; set -e; false" ;;
    bash-exits) rc="$greeting; exit 1" ;;
  esac
  mkdir -p "$home/.config/fish"
  printf '%s\n%s\n' "$trace" "$rc" >"$home/$file"
done
# servers WORDS...: puts them into $servers as --server options
options() {
  servers=
  for name; do servers="$servers --server $name"; done
}
# shellcheck disable=SC2086
options $good
all=$servers

cat >rank.py <<'PY'
import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], flush=True)
PY
echo data >data.txt

# ---- servers, prepare, rsync
code 0 servers -v --json
[ "$(picks 'len(d)')" = "$count" ] || fail "servers --json"
# shellcheck disable=SC2086
code 0 prepare $all
number=0
for name in $good $bad; do
  number=$((number + 1))
  case " $good " in
    *" $name "*) [ -s "$sandbox/node-$number/home/start-file-was-read" ] || fail "$name: its start file was not read" ;;
  esac
done
echo more >more.txt
# shellcheck disable=SC2086
code 0 rsync $all

# ---- run: exact output on both streams, exit codes; one at a time, and all at once
for name in $good; do
  code 7 --quiet run --server "$name" --cmd 'printf "out\n"; printf "err\n" >&2; cat more.txt; exit 7'
  printed 'out
more
'
  printed 'err
' err
done
# shellcheck disable=SC2086
code 0 run --json $all --cmd 'echo "{"; echo err >&2'
[ "$(picks '{(e["stdout"], e["stderr"], e["exit_code"]) for e in d}')" = "{('{\\n', 'err\\n', 0)}" ] || fail "run --json"

# ---- a job on each: listed, followed, waited for, pulled, stopped
for name in $good; do
  code 0 job-run --server "$name" --tag short --cmd 'echo "begin on $0"; echo oops >&2; echo made >"made by job.txt"; exit 3'
  code 0 job-run --server "$name" --tag long --cmd 'echo here; exec sleep 300'
done
code 1 job-wait --tag short
code 0 job-list --stopped --tag short --json
[ "$(picks '{(j["state"], j["exit_code"]) for j in d}')" = "{('failed', 3)}" ] || fail "the short jobs"
for key in $(picks '" ".join(str(j["key"]) for j in d)'); do
  code 3 --quiet job-tail --job "$key"
  printed 'begin on bash
'
  printed 'oops
' err
  code 0 job-pull --job "$key" 'made by job.txt' --to "$work/pulled $key"
  [ "$(cat "$work/pulled $key/made by job.txt")" = made ] || fail "job-pull"
done
code 0 job-list --tag long --json
[ "$(picks '[j["state"] for j in d] == ["running"] * '"$(echo "$good" | wc -w)")" = True ] || fail "the long jobs do not run"
key=$(picks 'd[-1]["key"]')
code 0 --quiet job-tail --job "$key" --no-follow --lines 1
printed 'here
'
# shellcheck disable=SC2086
code 0 job-rsync $all
[ "$(cat .remote/jobs/*/job.out | sort | uniq -c | awk '{ print $1, $2 }' | tr '\n' ' ')" = "7 begin 7 here " ] ||
  fail "job-rsync"
code 0 job-kill --tag long --grace 2
code 0 job-list --stopped --tag long --json
[ "$(picks '{j["state"] for j in d}')" = "{'killed'}" ] || fail "the long jobs were not killed"

# ---- a launch over all of them
# shellcheck disable=SC2086
code 0 torch-launch $all --nproc-per-node 2 --cmd 'python3 rank.py'
code 0 job-wait --tag rank.py
code 0 job-list --stopped --tag rank.py --json
[ "$(picks 'sorted((j["rank"], j["state"]) for j in d) == [(n, "succeeded") for n in range(14)]')" = True ] ||
  fail "the 14 ranks"
# shellcheck disable=SC2086
code 0 --quiet torch-launch --follow $all --nproc-per-node 1 --tag followed --cmd 'python3 rank.py'
[ "$(grep '^rank' "$work/out")" = "rank 0 of 7" ] || fail "--follow"

# ---- job-clean removes all of them
code 0 job-clean --yes
code 0 job-list --stopped --json
[ "$(picks d)" = "[]" ] || fail "job-clean left records"
[ -z "$(find "$sandbox" -path '*/.jobs/*' -name spec.json ! -path '*/.bin/*')" ] || fail "job-clean left folders"

# ---- authorize
ssh-keygen -q -t ed25519 -N '' -f "$work/second"
# shellcheck disable=SC2086
code 0 authorize $all --key "$work/second.pub"
[ "$(grep -c 'key added; logged in with it alone' "$work/out")" = 7 ] || fail "authorize"

# ---- shells that exit before anything runs: reported for the right server, and their output is ignored
for name in $bad; do
  for words in "run --cmd true" "prepare" "rsync" "job-run --cmd true" "launch --nproc-per-node 1 --cmd true"; do
    # shellcheck disable=SC2086
    code 1 $words --server "$name"
    printed ''
    grep -q "$name: .*its login shell ended before" "$work/err" || fail "the reason is not named: $words on $name"
    grep -q 'bashrc' "$work/err" || fail "the way out is not named: $words on $name"
  done
done
# With such a server, a launch starts nothing on any server.
code 1 launch --server zsh --server bash-fails --nproc-per-node 1 --tag half --cmd 'exec sleep 300'
code 0 job-list --tag half --json
[ "$(picks d)" = "[]" ] || fail "half of a launch was started"
code 0 job-list --stopped --json
[ "$(picks '{j["state"] for j in d if j["server"] in ("bash-fails", "bash-exits")} <= {"unknown", "starting"}')" = True ] ||
  fail "a job of a server that answers nothing is said to be something"
echo "login shells: all well"
