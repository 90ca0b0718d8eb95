"""The results of a part of the tests, and the report at the end of a run."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile

FOLDER = pathlib.Path("build/results")
MOST_UNSTEADY = 3
SHOWN_LINES = 30


@dataclasses.dataclass
class Failure:
    name: str
    output: str  # the file with its output
    command: str  # runs the test alone


@dataclasses.dataclass
class Step:
    """A step of a part: the installation of packages, a build, tests."""

    name: str
    seconds: float = 0
    passed: int = 0
    skipped: int = 0
    failed: list[Failure] = dataclasses.field(default_factory=list)
    unsteady: list[Failure] = dataclasses.field(default_factory=list)  # failed at first, but passed when repeated alone
    tests: list[tuple[str, str, float]] = dataclasses.field(default_factory=list)  # name, kind, seconds


@dataclasses.dataclass
class Result:
    part: str
    steps: list[Step] = dataclasses.field(default_factory=list)
    left_out: str = ""  # why this machine cannot run the part

    def failed(self):
        return [failure for step in self.steps for failure in step.failed]

    def unsteady(self):
        return [failure for step in self.steps for failure in step.unsteady]

    def seconds(self):
        return sum(step.seconds for step in self.steps)

    def word(self):
        if self.left_out:
            return "left out"
        return "failed" if self.failed() or len(self.unsteady()) > MOST_UNSTEADY else "passed"


def file_name(test):
    return re.sub(r"[^\w.]", "_", test)


def result_file(part, folder=FOLDER):
    return folder / (file_name(part) + ".json")


def save(result, tree):
    """Saves a result; `tree` identifies the sources that it belongs to."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    result_file(result.part).write_text(json.dumps({"tree": tree, **dataclasses.asdict(result)}))


def load(path, tree=None):
    """Returns the result in a file, or None if there is none for this tree."""
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    if tree is not None and data["tree"] != tree:
        return None
    steps = []
    for step in data["steps"]:
        for key in ("failed", "unsteady"):
            step[key] = [Failure(**failure) for failure in step[key]]
        steps.append(Step(**step))
    return Result(data["part"], steps, data["left_out"])


def hash_tree():
    """A hash of the sources in this folder, committed or not; "" outside a clone."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GIT_INDEX_FILE": folder + "/index"}

        def git(*words):
            return subprocess.run(["git", *words], env=environment, capture_output=True, text=True, check=True).stdout.strip()

        try:
            git("add", "-A")
            return git("write-tree")
        except (FileNotFoundError, subprocess.CalledProcessError):
            return ""


def report(results):
    """Prints how long everything took, each failed and unsteady test, and one line for each part."""
    for result in results:
        print_times(result)
    for result in results:
        for failure in result.failed():
            print_failure(failure)
    for result in results:
        for failure in result.unsteady():
            print("\nunsteady: %s (passed when it ran again alone; first output: %s)" % (failure.name, failure.output))
        if len(result.unsteady()) > MOST_UNSTEADY:
            print("\n%s: more than %d tests are unsteady, so the run failed" % (result.part, MOST_UNSTEADY))
    print("\n%-12s %-9s %8s %8s  %s" % ("part", "result", "unsteady", "minutes", ""))
    for result in results:
        names = ", ".join(failure.name for failure in result.failed()[:4]) + (", …" if len(result.failed()) > 4 else "")
        print("%-12s %-9s %8d %8.1f  %s" % (result.part, result.word(), len(result.unsteady()), result.seconds() / 60,
                                            result.left_out or names))
    steps = [step for result in results for step in result.steps]
    print("\n%d passed, %d failed, %d skipped" % (sum(step.passed for step in steps), sum(len(step.failed) for step in steps),
                                                  sum(step.skipped for step in steps)), flush=True)


def print_times(result):
    if not result.steps:
        return
    print("\n== %s: %s" % (result.part, ", ".join("%s %.1f min" % (step.name, step.seconds / 60) for step in result.steps)))
    tests = [test for step in result.steps for test in step.tests]
    kinds = dict.fromkeys(kind for _, kind, _ in tests)
    for kind in kinds:
        times = [seconds for _, other, seconds in tests if other == kind]
        print("%-12s %4d tests, %6.0f s, several at once" % (kind, len(times), sum(times)))
    for name, _, seconds in sorted(tests, key=lambda test: -test[2])[:10]:
        print("%6.1f s  %s" % (seconds, name))


def print_failure(failure):
    print("\n== failed: %s" % failure.name)
    lines = pathlib.Path(failure.output).read_text(errors="replace").rstrip().splitlines()
    if len(lines) > SHOWN_LINES:
        print("… %d lines before these are in %s" % (len(lines) - SHOWN_LINES, failure.output))
    print("\n".join(lines[-SHOWN_LINES:]))
    print("alone: %s" % failure.command)
