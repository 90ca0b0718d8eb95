"""Runs the tests of a build with ctest; failed tests run a second time, alone."""

import dataclasses
import json
import re
import subprocess
import time
import xml.etree.ElementTree as ElementTree

from results import Failure, Step, file_name

KINDS = ("unit", "integration", "e2e", "lint")
MOST_REPEATED = 10  # more failures than this are not caused by single tests


@dataclasses.dataclass
class Outcome:
    name: str
    state: str  # passed, failed or skipped
    seconds: float
    output: str


def run_ctest(name, preset, options, folder, jobs, environment):
    """Runs the tests that ctest's options select, in parallel.

    preset: a preset, or the build folder, which contains a slash. folder: for the output of failed tests. Returns a
    Step.
    """
    begin = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = call_ctest(preset, ["-j", str(jobs), *options], folder / "ctest.xml", environment)
    step = Step(name)
    if not outcomes:
        log = folder / "ctest.txt"
        log.write_text("ctest ran no test; its options: %s\n" % " ".join(options))
        step.failed.append(Failure("ctest", str(log), " ".join([*ctest_words(preset), *options])))
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    for outcome in failed:
        log = folder / (file_name(outcome.name) + ".txt")
        log.write_text(outcome.output)
        failure = Failure(outcome.name, str(log), command_for(preset, outcome))
        if len(failed) <= MOST_REPEATED and passes_alone(preset, outcome.name, folder, environment):
            step.unsteady.append(failure)
        else:
            step.failed.append(failure)
    step.passed = sum(outcome.state == "passed" for outcome in outcomes) + len(step.unsteady)
    step.skipped = sum(outcome.state == "skipped" for outcome in outcomes)
    kinds = read_kinds(preset)
    step.tests = [(outcome.name, kinds.get(outcome.name, ""), outcome.seconds) for outcome in outcomes]
    step.seconds = time.monotonic() - begin
    return step


def passes_alone(preset, name, folder, environment):
    print("\n== once more, alone: %s" % name, flush=True)
    again = call_ctest(preset, ["-R", "^%s$" % re.escape(name)], folder / "again.xml", environment)
    return bool(again) and again[0].state == "passed"


def ctest_words(preset):
    return ["ctest", "--test-dir" if "/" in preset else "--preset", preset]


def call_ctest(preset, options, report, environment):
    report.unlink(missing_ok=True)
    words = [*ctest_words(preset), "--no-tests=error", "--output-junit", str(report.resolve()), *options]
    subprocess.run(words, env=environment, check=False)
    if not report.exists():
        return []
    return [read_case(case) for case in ElementTree.parse(report).getroot().iter("testcase")]


def read_case(case):
    skipped = case.find("skipped")  # a test whose program is missing has this, too
    state = "passed" if case.get("status") == "run" else "failed"
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        state = "skipped"
    output = case.findtext("system-out") or ""
    failure = case.find("failure")
    if failure is not None and failure.get("message"):
        output += "\n%s\n" % failure.get("message")
    return Outcome(case.get("name"), state, float(case.get("time") or 0), output)


def read_kinds(preset):
    """The kind of each test, from its labels."""
    words = [*ctest_words(preset), "--show-only=json-v1"]
    tests = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["tests"]
    kinds = {}
    for test in tests:
        for each in test.get("properties", []):
            if each["name"] == "LABELS":
                kinds[test["name"]] = next((label for label in each["value"] if label in KINDS), "")
    return kinds


def command_for(preset, outcome):
    """The command that runs a test alone. For a suite, it runs only the GoogleTest tests that its output lists as
    failed."""
    if "/" in preset:
        return "%s -R '^%s$' --output-on-failure" % (" ".join(ctest_words(preset)), re.escape(outcome.name))
    if preset != "quick":
        return "tests/run --preset %s -R '^%s$'" % (preset, re.escape(outcome.name))
    names = dict.fromkeys(re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", outcome.output, re.MULTILINE))
    return "tests/run " + " ".join(names or [outcome.name])
