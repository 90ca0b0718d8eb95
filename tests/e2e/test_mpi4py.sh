#!/bin/sh
# Real programs of mpi4py with --launcher mpi: however one rank fails while the others wait for it in a collective, the launch ends,
# and the verdict names that rank, its exit status and its last words.
. "${0%/*}/support.sh"
command -v mpirun >/dev/null || skip "mpirun is not installed (Debian: openmpi-bin)"
code 0 sandbox up --nodes 2
system_python
code 0 rsync
python=
for program in python3 /usr/bin/python3; do
  [ -n "$python" ] || ! remote run --cmd "$program -c 'import mpi4py'" || python=$program
done
[ -n "$python" ] || skip "mpi4py is not installed (Debian: python3-mpi4py)"
cat >meet.py <<'PY'
import os
import signal
import sys

from mpi4py import MPI

ranks = MPI.COMM_WORLD
how, who = sys.argv[1], int(sys.argv[2])
assert ranks.allreduce(1) == 4
if ranks.Get_rank() == who and os.environ.get("RESTART_COUNT", "0") == "0":
    if how == "raises":
        raise ValueError("no such data")
    if how == "exits":
        sys.exit(3)
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "aborts":
        ranks.Abort(7)
ranks.allreduce(1)
print("rank %d is done" % ranks.Get_rank(), flush=True)
PY
code 0 rsync
mkdir "$work/tmp"
# meet N HOW RANK OPTIONS...: a launch of meet.py must exit with N; an mpirun that is killed leaves its files behind
meet() {
  wanted=$1 program="$python meet.py $2 $3"
  shift 3
  code "$wanted" torch-launch --launcher mpi --nproc-per-node 2 --follow -e "TMPDIR=$work/tmp" "$@" --cmd "$program"
}
blamed() { grep -q "^rank $1 on node-$2 failed first ($3," "$work/err" || fail "the verdict is not that rank $1 failed with $3"; }

meet 0 works 9
grep -qx 'rank 0 is done' "$work/out" || fail "rank 0 is not followed"
grep -qx 'all 4 ranks succeeded' "$work/err" || fail "the verdict on one that works"

meet 1 raises 3
blamed 3 2 'exit 1'
grep -qx '  ValueError: no such data' "$work/err" || fail "the verdict has not the exception"
grep -q '^  *File ".*/meet.py", line 12, in <module>$' "$work/err" || fail "the verdict has not the exception's line"
meet 1 exits 0
blamed 0 1 'exit 3'
# When a rank ends suddenly, Open MPI 5 makes the others fail at the same moment, and one of them may be on record first: docs/launchers/mpi.md.
case $(mpirun --version 2>/dev/null) in
  *' 5.'*) rank='[0-3]' server='[12]' how='[^,)]*' ;;
  *) rank='' server='' how='' ;;
esac
meet 1 dies 3
blamed "${rank:-3}" "${server:-2}" "${how:-SIGKILL}"
meet 1 aborts 1
blamed "${rank:-1}" "${server:-1}" "${how:-exit 7}"

meet 0 dies 2 --restarts 2
grep -q "^attempt 1: rank ${rank:-2} on node-${server:-2} failed (${how:-SIGKILL}) after " "$work/err" || fail "the first attempt is not told"
grep -qx 'all 4 ranks succeeded' "$work/err" || fail "the verdict on the second attempt"
