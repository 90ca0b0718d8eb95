#!/bin/sh
# The Python packages of python/ against practice servers: remote_launcher, and scripts that were written for labml_remote.
. "${0%/*}/support.sh"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
PYTHONPATH="$REMOTE_SOURCE_DIR/python" REMOTE_BINARY=$REMOTE PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH REMOTE_BINARY PYTHONDONTWRITEBYTECODE
for test in test_remote_launcher test_labml_remote; do
  # "" stands for the current folder, as where a user's script runs
  PYTHONPATH=":$PYTHONPATH" python3 "$REMOTE_SOURCE_DIR/tests/python/$test.py" >"$work/out" 2>"$work/err" || fail "$test"
done

# The types, and that no test above has left anything that runs.
[ "$(of_jobs 'sum(one["state"] in ("running", "starting") for one in d)')" = 0 ] || fail "jobs go on"
if command -v mypy >/dev/null; then
  (cd "$REMOTE_SOURCE_DIR/python" && mypy --strict --cache-dir="$work/mypy" remote_launcher labml_remote) >"$work/out" 2>"$work/err" ||
    fail "mypy is not content"
fi
echo "the Python packages work"
