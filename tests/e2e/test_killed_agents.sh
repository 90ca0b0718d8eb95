#!/bin/sh
# Guards, launch supervisors and watchdogs are killed (SIGKILL) in random subsets at random times during a launch.
# Afterwards job-list agrees with the processes, and job-kill leaves none behind. KILLED_AGENTS: the number of launches
# (default: 8); KILLED_AGENTS_SEED: the first seed.
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 2
cat >"$work/check.py" <<'PY'
import glob, json, os, random, signal, subprocess, sys, time

remote, mark, rounds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
OURS = ("remote-guard", "remote-launch", "remote-watchdog", "remote-job")
PATH = os.path.realpath(".remote/sandbox").encode()
SEEN = {}  # how often a job was listed in each state, with and without a process


def call(*words):
    return subprocess.run([remote, "--quiet", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)


def read(pid, name):
    with open("/proc/%d/%s" % (pid, name), "rb") as file:
        return file.read()


def pids():
    return [int(folder[6:]) for folder in glob.glob("/proc/[0-9]*")]


def agents():
    """Processes of ours: pid -> name."""
    found = {}
    for pid in pids():
        try:
            name = read(pid, "comm").decode().strip()
            if name in OURS and PATH in read(pid, "cmdline"):
                found[pid] = name
        except OSError:
            pass
    return found


def running():
    """Ids of the jobs with a process, by its environment."""
    found = set()
    for pid in pids():
        try:
            words = read(pid, "environ").split(b"\0")
        except OSError:
            continue
        if any(word.startswith(b"HOME=" + PATH) for word in words):
            found |= {word[14:].decode() for word in words if word.startswith(b"REMOTE_JOB_ID=")}
    return found


def is_forking():
    """Whether a job has no environment of its own yet: its guard has forked it."""
    return "remote-job" in agents().values()


def listed(is_new, has_attempts):
    """Lists the jobs of this launch, until none of them is starting or ending. Jobs also run between attempts, without a process."""
    for _ in range(100):
        before, forks = running(), is_forking()
        answer = call("job-list", "--stopped", "--json")
        after, forks = running(), forks or is_forking()
        assert answer.returncode == 0, answer.stderr
        jobs = [job for job in json.loads(answer.stdout) if is_new(job)]
        for job in jobs:
            told = (job["id"] in before, job["state"], job["id"] in after)
            assert told[1] != "running" or told[0] or told[2] or forks or has_attempts, (told, job)
            assert told[1] in ("running", "starting") or not told[0] or not told[2], (told, job)
        assert not after - {job["id"] for job in json.loads(answer.stdout)}, "a process without a record"
        if before == after and not any(job["state"] == "starting" for job in jobs):
            for job in jobs:
                key = (job["state"], job["id"] in after)
                SEEN[key] = SEEN.get(key, 0) + 1
            return
        time.sleep(0.1)
    sys.exit("still starting or ending: %s" % jobs)


def strike(chance):
    """Kills a random subset."""
    chosen = chance.choice([1.0, 0.5, 0.25])
    names = chance.choice([OURS, OURS, ("remote-guard",), ("remote-launch",), ("remote-launch", "remote-watchdog"), ("remote-guard", "remote-launch")])
    for pid, name in sorted(agents().items()):
        if name in names and name != "remote-job" and chance.random() < chosen:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def wait_for_end():
    """A supervisor whose server is cut off by these deaths waits until the others count as lost."""
    for _ in range(600):
        left = agents()
        if not left:
            return
        time.sleep(0.1)
    sys.exit("left: %s" % left)


def play(number):
    chance = random.Random(number)
    command = chance.choice(["exec sleep " + mark] * 3 + ["[ $RANK != 1 ] || exec sleep 0.5; exec sleep " + mark,
                                                        "[ $RANK != 2 ] || { sleep 0.3; exit 3; }; exec sleep " + mark])
    options = chance.choice([[], [], ["--restarts", "2"], ["--on-failure", "leave"]])
    known = {job["id"] for job in json.loads(call("job-list", "--stopped", "--json").stdout)}
    launch = subprocess.Popen([remote, "--quiet", "launch", "--nproc-per-node", "2", "--lost-after", "15", *options, "--cmd", command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(chance.choice([1, 1, 2, 3])):
        time.sleep(chance.uniform(0, 1.5 * whole))
        strike(chance)
    launch.wait()
    listed(lambda job: job["id"] not in known, "--restarts" in options)
    answer = call("job-kill", "--grace", "2", "--yes")
    assert answer.returncode == 0, answer.stderr
    assert not running(), running()
    jobs = json.loads(call("job-list", "--stopped", "--json").stdout)
    assert not any(job["state"] in ("running", "starting") for job in jobs), jobs
    wait_for_end()
    if len(jobs) > 100:
        call("job-clean", "--yes")


begin = time.monotonic()
assert call("launch", "--nproc-per-node", "2", "--cmd", "exec sleep " + mark).returncode == 0
whole = time.monotonic() - begin
assert agents() and len(running()) == 4
assert call("job-kill", "--yes").returncode == 0
for number in range(seed, seed + rounds):
    try:
        play(number)
    except BaseException:
        print("seed %d" % number, file=sys.stderr)
        raise
print("%d launches, listed: %s" % (rounds, sorted(SEEN.items())))
PY
python3 "$work/check.py" "$REMOTE" "$mark" "${KILLED_AGENTS:-8}" "${KILLED_AGENTS_SEED:-1}" || fail "see above"
