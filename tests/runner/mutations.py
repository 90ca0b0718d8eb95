"""The part `mutations`: breaks the program in one way at a time, and checks that the gate notices it.

Each file tests/mutations/NAME.patch breaks it once. The lines above the diff say what it breaks, and `Noticed by:` names tests of the gate,
each of which must fail: the full name of a test of GoogleTest, or a test of ctest.

They are applied in build/mutations, a copy of the sources with its own build, 2.5 GB in all. The copy has the folders of a clone, so ccache
finds what the clone has compiled. Each build has one mutation: if it had several, a test could fail because of another one. That would also
save little time, because each mutation changes other objects.
"""

import dataclasses
import fnmatch
import io
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tarfile
import time

import results
from results import Failure, Step

PATCHES = pathlib.Path("tests/mutations")
COPY = pathlib.Path("build/mutations")
LOGS = results.FOLDER / "mutations"
NOTICED = LOGS / "noticed.json"
TEST_SECONDS = 120


class OutOfTime(Exception):
    """Raised when time is up; the next run continues."""


class Failed(Exception):
    """Raised with the reason why a mutation was not noticed, or could not be tried."""


@dataclasses.dataclass
class Mutation:
    name: str
    path: pathlib.Path
    tests: list[str]
    is_of_agent: bool


def read_mutations():
    """Returns all mutations. Those of the agent come last, because it takes a minute to link for all tests except those
    of its modules."""
    mutations = []
    for path in sorted(PATCHES.glob("*.patch")):
        text = path.read_text()
        noticed_by = re.search(r"^Noticed by: (.+)$", text, re.MULTILINE)
        is_of_agent = re.search(r"^\+\+\+ b/src/(agent|rules|wire)/", text, re.MULTILINE) is not None
        mutations.append(Mutation(path.stem, path, noticed_by.group(1).split() if noticed_by else [], is_of_agent))
    return sorted(mutations, key=lambda each: each.is_of_agent)


def run(part, gate, jobs, names=()):
    """Tries these mutations, or all that were not noticed yet with the current sources. `gate`: ctest's options for the
    gate's tests."""
    tree = results.hash_tree()
    if not tree:
        part.result.left_out = "the sources are not in a clone"
        return
    mutations = read_mutations()
    unknown = set(names) - {each.name for each in mutations}
    if unknown:
        raise SystemExit("tests/run: unknown mutation %s; tests/mutations has: %s" %
                         (unknown.pop(), " ".join(sorted(each.name for each in mutations))))
    noticed = load_noticed(tree)
    chosen = [each for each in mutations if not names or each.name in names]
    left = [each for each in chosen if names or each.name not in noticed]
    LOGS.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    step = Step("mutations")
    if left:
        try_all(Tries(tree, gate, jobs, begin + int(os.environ.get("MUTATIONS_SECONDS") or 1100)), left, noticed, step)
    step.seconds = time.monotonic() - begin
    step.passed = sum(each.name in noticed for each in chosen)
    part.result.steps.append(step)
    print("mutations: %d of %d noticed" % (step.passed, len(chosen)), flush=True)


def load_noticed(tree):
    """Returns which tests noticed each mutation with the current sources."""
    try:
        data = json.loads(NOTICED.read_text())
    except FileNotFoundError:
        return {}
    return data["noticed"] if data["tree"] == tree else {}


def try_all(tries, mutations, noticed, step):
    """Adds noticed mutations to `noticed`, and the others to the failures of the step."""
    left = [each.name for each in mutations]

    def fail(name, log, why, command):
        print("%s: %s" % (name, why), flush=True)
        with log.open("a") as file:
            file.write("\n%s: %s\n" % (name, why))
        step.failed.append(Failure(name, str(log), command))

    try:
        unchanged = make_log("unchanged sources")
        try:
            tries.prepare(unchanged, [test for each in mutations for test in each.tests])
        except Failed as error:
            fail("unchanged sources", unchanged, error, "tests/run")
            return
        for each in mutations:
            noticed.pop(each.name, None)
            begin = time.monotonic()
            log = make_log(each.name)
            try:
                noticed[each.name] = tries.try_one(log, each)
                print("%s: noticed by %s (%.0f s)" % (each.name, noticed[each.name], time.monotonic() - begin), flush=True)
            except Failed as error:
                fail(each.name, log, error, "tests/run --mutation " + each.name)
            left.remove(each.name)
            NOTICED.write_text(json.dumps({"tree": tries.tree, "noticed": noticed}))
    except OutOfTime:
        fail("%d left" % len(left), make_log("left"), "not tried in time: " + " ".join(left), "tests/run --part mutations")


def make_log(name):
    log = LOGS / (results.file_name(name) + ".txt")
    log.write_text("")
    return log


class Tries:
    """The copy of the sources, and the commands that run in it."""

    def __init__(self, tree, gate, jobs, end):
        self.tree = tree
        self.gate = gate
        self.jobs = jobs
        self.end = end
        self.files = read_tree(tree)
        self.programs = {}  # of GoogleTest, with those of their tests that are in the gate
        self.ctests = set()  # the gate's other tests

    def prepare(self, log, tests):
        """Builds the unchanged sources, and runs the tests, which must pass."""
        write_tree(self.files, COPY)
        if self.call(log, "cmake", "--preset", "quick") != 0 or self.build(log, "all") != 0:
            raise Failed("do not build")
        self.find_tests()
        for test in dict.fromkeys(tests):
            if self.find_command(test) and self.fails(log, test):
                raise Failed("%s fails" % test)

    def find_tests(self):
        """Finds the tests of the gate, and their programs."""
        words = ["ctest", "--preset", "quick", *self.gate, "--show-only=json-v1"]
        listing = json.loads(subprocess.run(words, cwd=COPY, capture_output=True, check=True).stdout)
        filters = {}
        for test in listing["tests"]:
            program, *options = test.get("command", [""])
            if "--gtest_brief=1" in options:
                given = [option.partition("=")[2] for option in options if option.startswith("--gtest_filter=")]
                filters.setdefault(program, []).extend(given or ["*"])
            else:
                self.ctests.add(test["name"])
        for program, patterns in filters.items():
            listing = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
            self.programs[program] = {test for test in list_tests(listing)
                                      if any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns)}

    def find_command(self, test):
        """Returns the command that runs a test and the target to build for it; None if the gate has no such test."""
        for program, tests in self.programs.items():
            if test in tests:
                return [program, "--gtest_filter=" + test], os.path.basename(program)
        if test in self.ctests:
            return ["ctest", "--preset", "quick", "-R", "^%s$" % re.escape(test)], "all"
        return None

    def try_one(self, log, mutation):
        """Returns the tests that noticed it. Raises Failed unless all the tests it names did."""
        commands = {test: self.find_command(test) for test in mutation.tests}
        if not commands:
            raise Failed("NOT NOTICED: the patch has no line `Noticed by:`")
        absent = [test for test, command in commands.items() if command is None]
        if absent:
            raise Failed("NOT NOTICED: the gate has no test %s" % ", ".join(absent))
        write_tree(self.files, COPY)
        # Inside the copy, git would skip the paths, because they are relative to the top of the clone.
        if self.call(log, "git", "apply", "--recount", "--directory=%s" % COPY, str(mutation.path), folder=".") != 0:
            raise Failed("does not apply")
        if self.build(log, *{target for _, target in commands.values()}) != 0:
            raise Failed("does not build")
        passed = [test for test in commands if not self.fails(log, test)]
        if passed:
            raise Failed("NOT NOTICED by %s" % ", ".join(passed))
        return ", ".join(commands)

    def build(self, log, *targets):
        return self.call(log, "cmake", "--build", "--preset", "quick", "-j", str(self.jobs), "--target", *targets)

    def fails(self, log, test):
        """Returns whether a test fails twice, because an unsteady test does not prove anything. A test that does not
        end has failed."""
        command, _ = self.find_command(test)
        return all(self.call(log, *command, seconds=TEST_SECONDS) != 0 for _ in range(2))

    def call(self, log, *words, folder=COPY, seconds=None):
        """Runs a command and appends its output to the log. Returns its exit status, or None if it takes longer than
        `seconds`."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise OutOfTime
        environment = {**os.environ, "CCACHE_BASEDIR": str(COPY.resolve())}
        with log.open("a") as file:
            file.write("\n$ %s\n" % shlex.join(words))
            file.flush()
            status = run_limited(words, file, folder, environment, min(left, seconds or left))
        if status is None and time.monotonic() >= self.end:
            raise OutOfTime
        return status


def run_limited(words, log, folder, environment, seconds):
    """Runs a command. Returns its exit status, or None if it was stopped after this many seconds."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=environment,
                          start_new_session=True) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_group(process)


def end_group(process):
    """Stops a running command with its process group. Sends SIGTERM first, because compilers then remove unfinished
    objects."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is None:
            os.killpg(process.pid, number)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                continue


def list_tests(listing):
    """Returns the full names of the tests in the output of --gtest_list_tests."""
    tests = []
    suite = ""
    for line in listing.splitlines():
        name = line.partition("#")[0].rstrip()
        if not name.startswith(" "):
            suite = name
        else:
            tests.append(suite + name.strip())
    return tests


def read_tree(tree):
    """Returns the files of a git tree by their paths: whether each is executable, and its content."""
    data = subprocess.run(["git", "archive", tree], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {member.name: (member.mode & 0o100 != 0, archive.extractfile(member).read())
                for member in archive if member.isfile()}


def write_tree(files, folder):
    """Writes these files, and removes all others outside the build. Unchanged files keep their times, so that ninja
    does not compile them."""
    for name, (is_program, content) in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        path.chmod(0o755 if is_program else 0o644)
    for parent, folders, names in os.walk(folder):
        if pathlib.Path(parent) == folder and "build" in folders:
            folders.remove("build")
        for name in names:
            path = pathlib.Path(parent, name)
            if str(path.relative_to(folder)) not in files:
                path.unlink()
