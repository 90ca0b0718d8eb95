"""The command line of tests/run; see there."""

import os
import pathlib
import re
import socket
import subprocess
import sys

import results
from clean import run_clean
from mutations import list_tests
from parts import PARTS, Broken, Part, run_mutations

GTEST_PROGRAMS = ("unit_tests", "agent_tests", "simulation_tests", "integration_tests")


def main(words):
    prepare_environment()
    if not words:
        return run(["gate"])
    option, *rest = words
    if option == "--all":
        return run(PARTS, skip_passed=True)
    if option == "--part":
        unknown = [name for name in rest if name not in PARTS]
        if unknown or not rest:
            sys.exit("tests/run: --part takes one or more of: %s" % " ".join(PARTS))
        return run(rest)
    if option == "--preset" and rest:
        name = "preset " + rest[0]
        return run([name], {name: lambda part: run_preset(part, *rest)})
    if option == "--under-load":
        return run_under_load()
    if option == "--mutation" and rest:
        return run([option], {option: lambda part: run_mutations(part, *rest)})
    if option == "--on" and rest:
        os.execv("tests/on", ["tests/on", *rest])
    if option == "--libcxx":
        return run([option], {option: lambda part: run_libcxx(part, *rest)})
    return run(["these"], {"these": lambda part: run_some(part, words)})


def prepare_environment():
    """Prepares the environment of this process and all of its children."""
    try:
        socket.getaddrinfo("localhost", None)
    except OSError:
        sys.exit("tests/run: localhost has no address here, and the tests need it: add the line '127.0.0.1 localhost' to /etc/hosts")
    # Files that were compiled in another clone need not be compiled again.
    os.environ["CCACHE_BASEDIR"] = os.getcwd()
    os.environ["CCACHE_NOHASHDIR"] = "1"
    # If python3 is a script that searches for the right version (pyenv), each of thousands of calls would take a
    # second.
    python = os.path.dirname(os.path.realpath(sys.executable))
    if python not in os.environ["PATH"].split(":"):
        os.environ["PATH"] = python + ":" + os.environ["PATH"]


def run(names, functions=PARTS, skip_passed=False):
    """Runs these parts and prints the report. Returns the exit status."""
    done = []
    for name in names:
        tree = results.hash_tree()
        before = results.load(results.result_file(name), tree) if skip_passed and tree else None
        if before is not None and before.word() == "passed":
            print("\n== %s: passed before on this tree" % name, flush=True)
            done.append(before)
            continue
        part = Part(name)
        try:
            functions[name](part)
        except Broken:
            pass
        results.save(part.result, tree)
        done.append(part.result)
    results.report(done)
    return 1 if any(result.word() == "failed" for result in done) else 0


def run_under_load():
    """Runs the gate next to four busy processes."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        return run(["gate"])
    finally:
        for process in busy:
            process.kill()
            process.wait()


def run_preset(part, preset, *options):
    part.prepare(preset)
    part.check(preset, *options)


def run_libcxx(part, seconds="900"):
    part.install("build", "libcxx")
    part.require("configuration", "cmake", "--preset", "quick")
    part.command("libc++", "tests/libcxx", "build/quick", seconds)


def run_some(part, names):
    """Runs ctest tests (also named without their prefix), and suites and tests of GoogleTest."""
    part.install("build", "quick-test")
    part.build("quick")
    listing = subprocess.run(["ctest", "--preset", "quick", "-N"], capture_output=True, text=True, check=True).stdout
    known = re.findall(r"Test +#\d+: (\S+)", listing)
    for name in names:
        matching = [test for test in known if test in (name, "e2e." + name, "e2e.test_" + name)]
        if matching:
            part.check("quick", "-R", "^%s$" % re.escape(matching[0]))
        else:
            run_gtest(part, name)


def run_gtest(part, name):
    pattern = name if "." in name or "*" in name else name + ".*"
    chosen = "--gtest_filter=%s:*/%s" % (pattern, pattern)
    found = False
    for program in (pathlib.Path("build/quick/tests") / program for program in GTEST_PROGRAMS):
        listing = subprocess.run([program, "--gtest_list_tests", chosen], capture_output=True, text=True, check=True).stdout
        if list_tests(listing):
            part.command(name, str(program), chosen)
            found = True
    if not found:
        part.command(name, "sh", "-c", 'echo "there is no test $1"; exit 1', "sh", name)


if __name__ == "__main__":
    sys.exit(run_clean(lambda: main(sys.argv[1:])))
