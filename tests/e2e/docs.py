"""Runs the console blocks of a Markdown page, and compares their output with the page.

Usage: docs.py PAGE            in a folder where the page's commands may run
       docs.py --check PAGE... only checks that each block is run, or has the reason why not before it

A block of ```console or ```sh is run unless `<!-- not run: REASON -->` comes before it. All blocks of a page are run by one bash,
one after the other. In ```console lines that begin with `$ ` are commands; their output follows (including stderr): `…`
stands for anything, a line of `…` for any lines, and numbers for other numbers. `<!-- prints no more -->` is not needed: what
a command prints must be all there. In ```sh every line is a command, and its output does not matter.
A command that must fail ends in `# fails`.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXCUSE = re.compile(r"<!-- not run: \S.*?-->\s*$", re.DOTALL)


def blocks(page):
    """Yields (kind, text, whether it is run, line) for each block."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for found in FENCE.finditer(text):
        before = text[: found.start()]
        yield found[1], found[2], EXCUSE.search(before) is None, before.count("\n") + 1


def commands(kind, text):
    """Returns (command, expected output, or None if the output does not matter) for each command."""
    result = []
    for line in text.splitlines():
        if kind == "sh":
            if line.strip() and not line.lstrip().startswith("#"):
                result.append([line, None])
        elif line.startswith("$ "):
            result.append([line[2:], []])
        elif line.startswith("> ") and result:
            result[-1][0] += "\n" + line[2:]
        elif result:
            result[-1][1].append(line)
    for entry in result:
        while entry[1] and not entry[1][-1]:  # the empty line before the next command
            entry[1].pop()
    return result


def pattern(line):
    """A line of the page as a regular expression. Other numbers and other whitespace match, too."""
    if line.strip() == "…":
        return None
    out = ""
    for piece in re.findall(r"…|\s+|\d[\d.:]*|[^\s\d…]+", line.rstrip()):
        if piece == "…":
            out += ".*"
        elif piece.isspace():
            out += r"\s+"
        elif piece[0].isdigit():
            out += r"\d[\d.:]*"
        else:
            out += re.escape(piece)
    return re.compile(out + r"\s*")


def matches(shown, printed):
    """Whether the output matches the page."""
    if not shown:
        return not printed
    first = pattern(shown[0])
    if first is None:
        return any(matches(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and bool(first.fullmatch(printed[0])) and matches(shown[1:], printed[1:])


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.replace("\r", ""))


class Shell:
    """A single bash for all commands of a page."""

    def __init__(self):
        self.output = tempfile.TemporaryFile()
        self.end = "end-of-command-" + os.urandom(8).hex()
        self.bash = subprocess.Popen(
            ["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.output, text=True,
            start_new_session=True,
        )

    def run(self, command):
        """Returns the output and the exit code."""
        self.output.seek(0)
        self.output.truncate()
        # stdout and stderr go to one file, in the order in which they were written
        self.bash.stdin.write(f"{{ {command}\n}} >&2 </dev/null\necho {self.end} $?\n")
        self.bash.stdin.flush()
        for line in self.bash.stdout:
            if line.startswith(self.end):
                self.output.seek(0)
                return plain(self.output.read().decode("utf-8", "replace")), int(line.split()[1])
        raise SystemExit(f"bash ended in: {command}")

    def close(self):
        self.bash.stdin.close()
        try:
            self.bash.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.bash.pid, signal.SIGKILL)
            self.bash.wait()


def run(page):
    shell = Shell()
    count = 0
    try:
        for kind, text, wanted, line in blocks(page):
            for command, shown in commands(kind, text) if wanted else ():
                printed, code = shell.run(command)
                count += 1
                fails = command.rstrip().endswith("# fails")
                if (code != 0) != fails:
                    raise SystemExit(f"{page}:{line}: exit code {code}: {command}\n{printed}")
                lines = printed.rstrip("\n").split("\n") if printed.strip() else []
                while lines and not lines[0].strip():
                    lines.pop(0)
                if shown is not None and not matches(shown, lines):
                    want = "\n".join(shown)
                    raise SystemExit(f"{page}:{line}: {command}\n--- shown\n{want}\n--- printed\n{printed}")
    finally:
        shell.close()
    print(f"{page}: {count} commands do what it says")


def check(pages):
    bad = False
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for found in re.finditer(r"<!-- not run(?!: \S)", text):
            print(f"{page}:{text.count(chr(10), 0, found.start()) + 1}: 'not run' without a reason")
            bad = True
        for found in re.finditer(r"^[ \t]+```(console|sh)$", text, re.MULTILINE):
            print(f"{page}:{text.count(chr(10), 0, found.start()) + 1}: a console block that is indented is not found by the test")
            bad = True
        for found in re.finditer(r"^```(bash|shell)$", text, re.MULTILINE):
            print(f"{page}:{text.count(chr(10), 0, found.start()) + 1}: write console or sh, so that the test finds it")
            bad = True
    raise SystemExit(1 if bad else 0)


if sys.argv[1] == "--check":
    check(sys.argv[2:])
elif sys.argv[1] == "--runs":  # whether the page has a block to run
    raise SystemExit(0 if any(wanted for _, _, wanted, _ in blocks(sys.argv[2])) else 1)
else:
    run(sys.argv[1])
