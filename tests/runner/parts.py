"""The parts of the tests, and the steps of each."""

import os
import pathlib
import shlex
import subprocess
import time

import mutations
from clean import keep_daemons
from ctest import run_ctest
from results import FOLDER, Failure, Result, Step, file_name, load, result_file

# The gate's tests. Tests with the label `release` need torch: the gate is the same with and without it.
GATE = ("-L", "unit|quick|lint", "-LE", "release")

# Tests that depend on the release of Debian run on Debian 13, and need a separate build there.
ON_TRIXIE = "unit|release|both"


class Broken(Exception):
    """After this failure, the other steps of the part make no sense."""


class Part:
    """Runs steps and collects their results."""

    def __init__(self, name):
        self.result = Result(name)
        self.folder = FOLDER / file_name(name)

    def command(self, name, *words, **environment):
        """Runs a command and returns whether it succeeded. Its output is also kept in a file."""
        self.announce(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / (file_name(name) + ".txt")
        begin = time.monotonic()
        with open(path, "wb") as log, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                                       env={**os.environ, **environment}) as process:
            for line in process.stdout:
                os.write(1, line)
                log.write(line)
        step = Step(name, time.monotonic() - begin)
        if process.returncode != 0:
            step.failed.append(Failure(name, str(path), shlex.join(words)))
        self.result.steps.append(step)
        return process.returncode == 0

    def require(self, name, *words, **environment):
        if not self.command(name, *words, **environment):
            raise Broken

    def install(self, *purposes):
        self.require("packages", "scripts/install-deps", *purposes)
        keep_daemons()

    def build(self, preset, *targets):
        self.require("configuration", "cmake", "--preset", preset)
        self.require("build", "cmake", "--build", "--preset", preset, "-j", str(compilers()), *targets)

    def prepare(self, preset):
        """Installs everything that the tests need, and builds."""
        self.install("build", "test")
        self.build(preset)

    def check(self, preset, *options, **environment):
        """Runs the tests that these ctest options select."""
        name = "tests"
        self.announce(name)
        jobs = int(os.environ.get("TEST_JOBS") or 2 * compilers())  # many of them wait
        self.result.steps.append(run_ctest(name, preset, options, self.folder, jobs, {**os.environ, **environment}))

    def announce(self, step):
        print("\n== %s: %s" % (self.result.part, step), flush=True)


def compilers():
    return int(os.environ.get("JOBS") or os.cpu_count())


def can_make_roots():
    return subprocess.run(["tests/on", "--possible"], check=False).returncode == 0


def without_those_on_trixie(labels):
    """Adds the label of the tests that run on Debian 13, unless this machine cannot run it."""
    return labels + "|release" if can_make_roots() else labels


def run_gate(part):
    part.install("build", "quick-test")
    part.build("quick")
    part.check("quick", *GATE)


def run_e2e(part):
    part.prepare("quick")
    part.check("quick", "-L", "e2e", "-LE", without_those_on_trixie("quick|here"))


def run_containers(part):
    part.prepare("quick")
    part.check("quick", "-L", "here")


def run_shells(part):
    part.prepare("quick")
    part.check("quick", "-L", "shells", "-LE", "release")


def run_asan(part):
    part.prepare("asan")
    part.check("asan", "-L", "unit|integration|both|here", "-LE", without_those_on_trixie("shells"))


def run_tsan(part):
    part.prepare("tsan")
    # A fork has one thread.
    part.check("tsan", "-L", "unit|integration", "-LE", "release|shells", "-E", "IsKilled")


def run_trixie(part):
    if not can_make_roots():
        part.result.left_out = "this machine allows no mounts, or there is no root"
        return
    inside = FOLDER / "trixie" / "inside"
    kept = result_file("preset quick", inside)
    kept.unlink(missing_ok=True)
    part.command("Debian 13", "tests/on", "trixie", "--preset", "quick", "-L", ON_TRIXIE)
    there = load(kept)
    if there is None:
        return  # it failed before its tests started
    part.result.steps = there.steps
    for failure in there.failed() + there.unsteady():
        failure.output = str(inside / pathlib.Path(failure.output).relative_to(FOLDER))
        failure.command = failure.command.replace("tests/run", "tests/on trixie", 1)


def run_simulation(part):
    part.install("build", "quick-test")
    part.build("quick", "--target", "simulation_tests")
    part.check("quick", "-R", "^simulation$", SIMULATION_SEEDS="20000")


def run_arm64(part):
    part.install("build", "package", "package-test", "quick-test")
    part.build("arm64")
    agent = "build/arm64/agent/remote-agent-aarch64"
    part.command("start under emulation", "sh", "-c", 'qemu-aarch64-static "$1" try; [ $? = 42 ]', "sh", agent)
    part.command("size", "sh", "tests/lint/agent_size.sh", "build/arm64/agent")
    tests = "build/arm64/tests"
    part.require("configuration of the tests", "cmake", "-S", "tests/arm64", "-B", tests, "-G", "Ninja")
    part.require("build of the tests", "cmake", "--build", tests, "-j", str(compilers()))
    part.check(tests)


def run_plain(part):
    part.install("build", "test")
    part.command("plain builds", "tests/plain", str(compilers()))


def run_tidy(part):
    part.install("build", "test")
    part.require("configuration", "cmake", "--preset", "dev")
    part.command("clang-tidy", "tests/lint/tidy.sh", "build/dev", os.environ.get("TIDY_SECONDS", "1100"), str(compilers()))


def run_fuzz(part):
    part.install("build", "test")
    part.command("fuzzers", "tests/fuzz/run", os.environ.get("FUZZ_SECONDS", "10"))


def run_packages(part):
    part.command("packages", "tests/packages")


def run_mutations(part, *names):
    part.install("build", "quick-test")
    mutations.run(part, GATE, compilers(), names)


# In the order of `--all`.
PARTS = {
    "gate": run_gate,
    "e2e": run_e2e,
    "containers": run_containers,
    "shells": run_shells,
    "asan": run_asan,
    "trixie": run_trixie,
    "tsan": run_tsan,
    "simulation": run_simulation,
    "fuzz": run_fuzz,
    "tidy": run_tidy,
    "arm64": run_arm64,
    "plain": run_plain,
    "packages": run_packages,
    "mutations": run_mutations,
}
