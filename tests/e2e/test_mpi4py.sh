#!/bin/sh
# Real mpi4py programs with --launcher mpi: however one rank fails while the others wait for it in a collective, the
# launch ends, and the verdict names that rank, its exit status and its last words.
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
assert ranks.allreduce(1) == int(os.environ["WORLD_SIZE"])
if ranks.Get_rank() == who and os.environ.get("RESTART_COUNT", "0") == "0":
    if how == "raises":
        raise ValueError("no such data")
    if how == "exits":
        sys.exit(int(sys.argv[3]))
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "aborts":
        ranks.Abort(7)
ranks.allreduce(1)
print("rank %d is done" % ranks.Get_rank(), flush=True)
PY
code 0 rsync
mkdir "$work/tmp"
nproc=2
# meet N WORDS OPTIONS...: a launch of meet.py WORDS must exit with N; an mpirun that is killed leaves its files behind
meet() {
  wanted=$1 program="$python meet.py $2"
  shift 2
  code "$wanted" torch-launch --launcher mpi --nproc-per-node $nproc --follow -e "TMPDIR=$work/tmp" "$@" --cmd "$program"
}
blamed() { grep -q "^rank $1 on node-$2 failed first ($3," "$work/err" || fail "the verdict is not that rank $1 failed with $3"; }

meet 0 'works 9'
grep -qx 'rank 0 is done' "$work/out" || fail "rank 0 is not followed"
grep -qx 'all 4 ranks succeeded' "$work/err" || fail "the verdict on one that works"

meet 1 'raises 3'
blamed 3 2 'exit 1'
grep -qx '  ValueError: no such data' "$work/err" || fail "the verdict has not the exception"
grep -q '^  *File ".*/meet.py", line 12, in <module>$' "$work/err" || fail "the verdict has not the exception's line"
meet 1 'exits 0 3'
blamed 0 1 'exit 3'
# When a rank ends suddenly, Open MPI 5 makes the others exit with 14 at the same moment. A rank may also exit with 14
# on its own.
meet 1 'exits 2 14'
blamed 2 2 'exit 14'
meet 1 'dies 3'
blamed 3 2 SIGKILL
meet 1 'aborts 1'
blamed 1 1 'exit 7'

meet 0 'dies 2' --restarts 2
grep -q '^attempt 1: rank 2 on node-2 failed (SIGKILL) after ' "$work/err" || fail "the first attempt is not told"
grep -qx 'all 4 ranks succeeded' "$work/err" || fail "the verdict on the second attempt"

# One rank per server, whose stderr is also mpirun's
nproc=1
meet 0 'dies 0' --restarts 2
grep -q '^attempt 1: rank 0 on node-1 failed (SIGKILL) after ' "$work/err" || fail "the first attempt is not told"
grep -qx 'both ranks succeeded\|all 2 ranks succeeded' "$work/err" || fail "the verdict on the second attempt"
meet 1 'dies 1'
blamed 1 2 SIGKILL

# MPICH kills a rank together with its shell, even for MPI_Abort. Debian's mpi4py supports only Open MPI, so this is the
# part of it that the test needs, for MPICH
if ! mpirun.mpich --version >/dev/null 2>&1; then
  echo "without MPICH: there is no mpirun.mpich"
  exit 0
fi
mkdir "$work/mpich" mpi4py
ln -s "$(command -v mpirun.mpich)" "$work/mpich/mpirun"
ln -s "$(command -v hydra_pmi_proxy)" "$work/mpich/hydra_pmi_proxy"
# shellcheck disable=SC2016  # the servers expand it
printf 'prologue: "export PATH=\\"%s:$PATH\\""\n' "$work/mpich" >>.remote/configs.yaml
: >mpi4py/__init__.py
cat >mpi4py/MPI.py <<'PY'
import ctypes

mpi = ctypes.CDLL("libmpich.so.12", ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
ctypes.pythonapi.Py_AtExit(mpi.MPI_Finalize)
WORLD, INT, SUM = 0x44000000, 0x4C000405, 0x58000003


class COMM_WORLD:
    def Get_rank():
        rank = ctypes.c_int()
        mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
        return rank.value

    def allreduce(number):
        sent, received = ctypes.c_int(number), ctypes.c_int()
        mpi.MPI_Allreduce(ctypes.byref(sent), ctypes.byref(received), 1, INT, SUM, WORLD)
        return received.value

    def Abort(code):
        mpi.MPI_Abort(WORLD, code)
PY
code 0 rsync
nproc=2
meet 1 'raises 3'
blamed 3 2 'exit 1'
grep -qx '  ValueError: no such data' "$work/err" || fail "the verdict has not the exception"
meet 1 'dies 0'
blamed 0 1 SIGKILL
meet 1 'aborts 1'
blamed 1 1 'exit 7'
grep -q '^  Abort(7) on node 1 ' "$work/err" || fail "the verdict has not what MPI_Abort says"
meet 0 'aborts 3' --restarts 2
grep -q '^attempt 1: rank 3 on node-2 failed (exit 7) after ' "$work/err" || fail "the first attempt is not told"
nproc=1
meet 1 'aborts 1'
blamed 1 2 'exit 7'
