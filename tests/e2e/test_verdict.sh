#!/bin/sh
# If one rank raises an exception and the others fail because it is gone, the verdict names that rank, although the
# others end before it and within the same second.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 2
system_python
cat >train.py <<'PY'
"""Rank 2 fails, and needs long to exit; the others notice, and are gone before it."""
import os
import sys
import time
import traceback

rank, shared = os.environ["RANK"], os.environ["SHARED"]


def until(condition):
    while not condition():
        time.sleep(0.01)


def file_of(number):
    return os.path.join(shared, str(number))


def is_gone(number):
    try:
        with open(file_of(number)) as file:
            os.kill(int(file.readline()), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        pass
    return False


def write_own():
    with open(file_of(rank), "w") as file:
        file.write("%d\n" % os.getpid())
    return os.stat(file_of(rank)).st_mtime


def noticed():
    """The files' clock ticks a few hundred times a second: a message over a network takes one tick at least."""
    return write_own() > os.stat(file_of(2)).st_mtime + 0.01


try:
    if rank == "2":
        raise ValueError("a bad batch")
    until(lambda: os.path.exists(file_of(2)))
    until(noticed)
    raise RuntimeError("Connection closed by peer")
except Exception:
    traceback.print_exc()
    sys.stderr.flush()
if rank == "2":
    write_own()
    until(lambda: all(is_gone(number) for number in (0, 1, 3)))
os._exit(1)
PY
code 0 rsync

# told WHEN: the verdict comes last
told() {
  grep -q '^rank 2 on node-2 failed first (exit 1, ....-..-.. ..:..:.. UTC.*, .* before the next): last lines of its stderr:$' "$work/err" ||
    fail "another rank is blamed, $1"
  grep -q '^  ValueError: a bad batch$' "$work/err" || fail "the cause is not shown, $1"
  grep -q '^3 others failed after it$' "$work/err" || fail "the others, $1"
}
for round in 1 2 3 4 5; do
  mkdir "$work/$round"
  code 1 launch --nproc-per-node 2 --failure-grace 30 --follow -e "SHARED=$work/$round" --cmd 'python3 train.py'
  told "round $round"
done

# The same from the records, with and without the index, although the output with the traceback is shown only once; the
# listing has exactly its documented fields.
told_from_records() {
  grep -q '^rank 2 on node-2 failed first (exit 1, ....-..-.. ..:..:.. UTC.*, .* before the next): 3 others failed after it$' "$work/err" ||
    fail "another rank is blamed, $1"
  grep -q 'ValueError: a bad batch$' "$work/out" "$work/err" || fail "the cause is not shown, $1"
}
last=$(of_jobs 'max(job["key"] for job in d if job["rank"] == 0)')
code 1 job-tail --all --no-follow --job "$last"
told_from_records afterwards
rm .remote/jobs/index
code 1 job-tail --all --no-follow --job "$last"
told_from_records "without the index"
[ "$(of_jobs '[job for job in d if "failed_at_ms" in job]')" = "[]" ] || fail "failed_at_ms is listed"
