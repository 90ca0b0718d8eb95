#!/bin/sh
# The Python packages in python/ with practice servers: remote_launcher, and scripts written for labml_remote.
. "${0%/*}/support.sh"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
PYTHONPATH="$REMOTE_SOURCE_DIR/python" REMOTE_BINARY=$REMOTE PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH REMOTE_BINARY PYTHONDONTWRITEBYTECODE
for test in test_remote_launcher test_labml_remote; do
  # "" is the current folder, as for a user's script
  PYTHONPATH=":$PYTHONPATH" python3 "$REMOTE_SOURCE_DIR/tests/python/$test.py" >"$work/out" 2>"$work/err" || fail "$test"
done

# Checks the types, and that the tests above left nothing running.
[ "$(of_jobs 'sum(one["state"] in ("running", "starting") for one in d)')" = 0 ] || fail "jobs go on"
if command -v mypy >/dev/null; then
  (cd "$REMOTE_SOURCE_DIR/python" && mypy --strict --cache-dir="$work/mypy" remote_launcher labml_remote) >"$work/out" 2>"$work/err" ||
    fail "mypy is not content"
fi
echo "the Python packages work"
