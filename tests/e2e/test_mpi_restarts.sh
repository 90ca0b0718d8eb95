#!/bin/sh
# mpirun with --restarts: after a rank fails or is killed, after mpirun itself ends, and after the loss of a server,
# which a spare replaces, mpirun restarts with the ranks on all servers.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
command -v mpirun >/dev/null || skip "mpirun is not installed (Debian: openmpi-bin)"
code 0 sandbox up --nodes 3
system_python
echo 'spares: [node-3]' >>.remote/configs.yaml
mkdir "$work/tmp" # the files of an mpirun that is killed
# of_launch SERVER EXPRESSION: evaluates it for the newest launch's job on this server
of_launch() { of_jobs "[job$2 for job in d if job['server'] == '$1'][-1]"; }
folder() { find .remote/sandbox -type d -path "*/.jobs/$(of_launch "$1" "['id']")"; }
attempts() { of_launch node-1 "['attempts']" >/dev/null && of_jobs \
  '[(a["cause"], a.get("rank"), a.get("server"), a.get("signal")) for job in d if job["server"] == "node-1" for a in job.get("attempts", [])][-'"$1"':]'; }
code 2 launch --launcher mpi --restarts 1 --mpi-agent ssh --cmd true
grep -q 'over ssh cannot restart' "$work/err" || fail 'it is not told that mpirun over ssh does not start again'
code 0 rsync

# all_begin ATTEMPT: waits for the ranks on node-1 and node-2 or, from the fourth attempt on, node-3
all_begin() {
  other=$second
  [ "$1" -lt 3 ] || other=$third
  [ "$(cat "$first/job.out" "$other/job.out" | grep -c "attempt $1 rank [0-3] of 4 ")" = 4 ]
}
# pid_of RANK ATTEMPT
pid_of() { sed -n "s/.*attempt $2 rank $1 of 4 is \([0-9]*\)\$/\1/p" "$first/job.out" "$second/job.out"; }

trouble() {
  # ---- a rank fails, and mpirun stops the others; the next attempt succeeds
  code 0 launch --launcher mpi --nproc-per-node 2 -e "TMPDIR=$work/tmp" --restarts 1 --failure-grace 0 --follow --cmd '
    echo "rank $RANK of $WORLD_SIZE, attempt $RESTART_COUNT at $MASTER_PORT, node $NODE_RANK of $GROUP_WORLD_SIZE"
    [ $RESTART_COUNT = 0 ] || exit 0
    [ $RANK = 3 ] || exec sleep 300
    echo "rank 3 has no data" >&2
    exit 3'
  grep -q '^attempt 1: rank 3 on node-2 failed (exit 3) after ' "$work/err" || fail 'the first attempt is not told'
  code 0 job-tail --launch last --all --no-follow
  [ "$(sed -n 's/.*rank \([0-3]\) of 4, attempt 1 at .*, node [01] of 2$/\1/p' "$work/out" | sort | tr -d '\n')" = 0123 ] ||
    fail 'not all ranks ran again'
  [ "$(sed -n 's/.*attempt 1 at \([0-9]*\),.*/\1/p' "$work/out" | sort -u | wc -l)" = 1 ] || fail 'they do not have one port'
  code 0 job-tail --launch last --rank 3 --no-follow
  [ "$(grep -c '^rank 3 of 4, attempt [01] ' "$work/out")" = 2 ] || fail 'the lines of an attempt of rank 3 are gone'
  until_true lifelines_are 0

  # ---- a failure that --restart-on excludes, although mpirun stops the others with a signal
  code 1 launch --launcher mpi --nproc-per-node 2 -e "TMPDIR=$work/tmp" --restarts 3 --restart-on signal --failure-grace 0 --follow --cmd '
    [ $RANK = 3 ] || exec sleep 300
    exit 3'
  ! grep -q 'begin anew' "$work/err" || fail 'it began anew after an exit'
  grep -q 'rank 3 on node-2 failed first (exit 3' "$work/err" || fail 'the verdict does not name rank 3'

  # ---- a rank is killed, then mpirun, then a server
  homes | while read -r home; do rm -f "$home/go"; done
  code 0 launch --launcher mpi --nproc-per-node 2 -e "TMPDIR=$work/tmp" --restarts 4 --restart-on signal,lost --failure-grace 0 --lost-after 3 \
    --no-follow --cmd 'echo "attempt $RESTART_COUNT rank $RANK of $WORLD_SIZE is $$"; while [ ! -e ~/go ]; do sleep 0.2; done; exit 0'
  first=$(folder node-1) second=$(folder node-2) third=$(folder node-3)
  until_true all_begin 0
  kill -9 "$(pid_of 2 0)"
  until_true all_begin 1
  kill -9 "$(cut -d ' ' -f 1 "$first/pid")"
  until_true all_begin 2
  vanish node-2
  until_true all_begin 3
  homes | while read -r home; do : >"$home/go"; done
  until_true eval '[ "$(of_launch node-1 "[\"state\"]")" = succeeded ]'
  [ "$(attempts 3)" = "[('signal', 2, 'node-2', 'SIGKILL'), ('signal', 0, 'node-1', 'SIGKILL'), ('lost', None, 'node-2', None)]" ] ||
    fail "the attempts are told as $(attempts 3)"
  until_true lifelines_are 0
}
trouble
code 0 sandbox up --nodes 3

# ---- MPICH's mpirun, if it is installed
if mpirun.mpich --version >/dev/null 2>&1; then
  mkdir "$work/mpich"
  ln -s "$(command -v mpirun.mpich)" "$work/mpich/mpirun"
  ln -s "$(command -v hydra_pmi_proxy)" "$work/mpich/hydra_pmi_proxy"
  printf 'prologue: "export PATH=\\"%s:$PATH\\""\n' "$work/mpich" >>.remote/configs.yaml
  trouble
else
  echo "without MPICH: there is no mpirun.mpich"
fi
