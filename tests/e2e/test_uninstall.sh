#!/bin/sh
# remote uninstall with real sshd: it refuses while a job is running, removes all programs, and the next launch installs
# them again.
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 2
system_python
homes=$(homes)
first_home=$(printf '%s\n' "$homes" | head -n 1)

# nothing_left: whether all programs are gone from all servers
nothing_left() {
  printf '%s\n' "$homes" | while IFS= read -r home; do
    [ ! -e "$home/.cache/remote" ] || fail "$home/.cache/remote is still there"
    [ -z "$(find "$home" -path '*/.jobs/.bin')" ] || fail "a copy is left in $home"
  done
}

code 0 launch --rsync --no-follow --nproc-per-node 1 -- sleep 1000
code 1 uninstall --yes
grep -q '^error: node-1, node-2: cannot uninstall\|^error: node-1: cannot uninstall' "$work/err" || fail "it does not refuse"
[ -e "$first_home/.cache/remote" ] || fail "it has removed the program"
code 0 job-kill last --yes

until_true remote uninstall --dry-run # the lifelines have ended
grep -q "^node-1: $first_home/.cache/remote" "$work/out" || fail "the dry run does not list the program"
[ -e "$first_home/.cache/remote" ] || fail "the dry run has removed the program"
code 2 uninstall

# A folder that another test has just made in /tmp is reported for a minute.
until_true remote uninstall --yes
[ "$(grep -c 'nothing of remote is left$' "$work/out")" = 2 ] || fail "it does not say that nothing is left"
nothing_left
[ -n "$(find "$first_home" -path '*/.jobs/*/job.out')" ] || fail "it has removed the output of a job"

# everything is installed again
code 0 launch --rsync --follow --nproc-per-node 1 -- echo again
grep -q again "$work/out" || fail "no output"
until_true remote uninstall --yes
nothing_left
echo "uninstall: all well"
