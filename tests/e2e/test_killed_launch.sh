#!/bin/sh
# The real binary is killed (SIGKILL) during launches, at 30 points in time. Afterwards job-list agrees with the
# existing processes for each rank, and job-kill leaves nothing behind.
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 2
cat >"$work/check.py" <<'PY'
"""30 launches, killed after growing delays; the longest is longer than a launch takes."""
import glob, json, os, signal, subprocess, sys, time

remote, mark = sys.argv[1:]


def call(*words):
    return subprocess.run([remote, "--quiet", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)


def start():
    return subprocess.Popen([remote, "--quiet", "launch", "--nproc-per-node", "1", "--tag", "round",
                             "--cmd", "exec sleep " + mark], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def running():
    """Ids of the jobs whose command runs, by the cookie."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(folder + "/cmdline", "rb") as file:
                if file.read() != b"sleep\0" + mark.encode() + b"\0":
                    continue
            with open(folder + "/environ", "rb") as file:
                found += [word[14:].decode() for word in file.read().split(b"\0") if word.startswith(b"REMOTE_JOB_ID=")]
        except OSError:
            pass
    return sorted(found)


def listed():
    """The jobs. Each answer must be true; `starting` is asked about again: what a killed launch had sent may still be
    at work."""
    for _ in range(50):
        before = running()
        answer = call("job-list", "--stopped", "--json")
        after = running()
        assert answer.returncode == 0, answer.stderr
        jobs = json.loads(answer.stdout)
        for job in jobs:
            told = (job["id"] in before, job["state"], job["id"] in after)
            assert told[1] in ("starting", "running", "lost"), told
            assert told[1] != "running" or told[2], told
            assert told[1] == "running" or not told[0], told
            assert told[1] != "lost" or not told[2], told
        assert not set(after) - {job["id"] for job in jobs}, "a process without a record"
        if not any(job["state"] == "starting" for job in jobs):
            return jobs
        time.sleep(0.1)
    sys.exit("still starting: %s" % jobs)


begin = time.monotonic()
process = start()
assert process.wait() == 0
whole = time.monotonic() - begin
seen = {2: 0}
for number in range(30):
    process = start()
    time.sleep(1.1 * whole * number / 29)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if number % 3 == 2:
        listed()
jobs = listed()
launches = {}
for job in jobs:
    launches.setdefault(job["launch"], []).append(job["state"])
shapes = [states.count("running") for states in launches.values()]
assert 2 in shapes and (0 in shapes or len(launches) < 31), shapes  # some were killed early, some were not
keys = [job["key"] for job in jobs]
assert len(set(keys)) == len(keys), keys
answer = call("job-kill", "--tag", "round", "--grace", "2", "--yes")
assert answer.returncode == 0, answer.stderr
assert not running(), running()
assert all(job["state"] in ("killed", "lost") for job in json.loads(call("job-list", "--stopped", "--json").stdout))
print("launches recorded: %d, with 0, 1, 2 ranks: %s" % (len(launches), [shapes.count(n) for n in (0, 1, 2)]))
PY
python3 "$work/check.py" "$REMOTE" "$mark" || fail "see above"
