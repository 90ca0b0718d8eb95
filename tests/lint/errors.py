"""Finds every place under src/ that makes an Error, and checks that it has a hint.

It checks the form of the call, not the text at run time: there must be a what and a reason, a hint or a remedy must
follow, and the texts must follow docs/architecture.md. Places that cannot have a hint are listed in errors.txt, with
the reason. tests/integration/errors_test.cpp causes the errors that are easy to cause, and checks the displayed text. A
new place without a hint fails here, and so does a line in errors.txt that no longer matches a place.
"""
import pathlib
import re
import sys

# Constructors and functions that make an Error from a what, a reason and a hint.
MAKERS = {"Error", "Error::usage"}
# Functions that make an Error from a reason at a position in a file or a line of an answer, and add the hint
# themselves.
PLACED = re.compile(r"\b(?:section|top|node|entries|at)\.(?:error|unfit)\(|\bconfig_error\(|\bline\.refuse\(")


def blank_comments(text):
    """Replaces comments with spaces, so that offsets stay the same."""
    token = re.compile(r'R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*(?:.|\n)*?\*/')
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if m[0].startswith("/") else m[0], text)


def arguments(text, start):
    """Returns the arguments of a call whose parenthesis opens at `start`, and the position where it closes."""
    depth, begin, at, found = 0, start + 1, start, []
    while True:
        c = text[at]
        if c == '"':
            at += 1
            while text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif c == "'" and not text[at - 1].isalnum():
            at += 3 if text[at + 1] == "\\" else 2
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                found.append(text[begin:at])
                return [re.sub(r"\s+", " ", one).strip() for one in found if one.strip()], at
        elif c == "," and depth == 1:
            found.append(text[begin:at])
            begin = at + 1
        at += 1


def literal(expression):
    """The text of an argument that consists only of string literals; None for anything else."""
    parts = re.findall(r'"((?:\\.|[^"\\])*)"', expression)
    rest = re.sub(r'"(?:\\.|[^"\\])*"', "", expression).strip()
    return "".join(parts) if parts and not rest else None


def places(root):
    """Yields (file, line, arguments, text after the call) for each place that makes an Error."""
    sources = {path.relative_to(root).as_posix(): blank_comments(path.read_text())
               for folder in ("src", "include") for path in sorted((root / folder).rglob("*.?pp"))}
    classes = {name for text in sources.values()
               for name in re.findall(r"\bclass (\w+)(?: final)? : public (?:\w+::)?Error\b", text)}
    call = re.compile(r"\b(?:\w+::)?(Error::usage|%s)(\s+\w+)?\s*([({])" % "|".join(sorted(classes | {"Error"})))
    for name, text in sources.items():
        for match in call.finditer(text):
            before = text[:match.start()].rstrip()
            if before.endswith(("class", "~", "explicit")) or name == "include/remote/error.hpp":
                continue
            if match[3] == "{" and not match[2]:
                continue  # the body of a function that returns one
            inside, end = arguments(text, match.start(3))
            if match[2] and (not inside or re.match(r"(?:const )?[\w:<>]+ ?[&*] ?\w*$", inside[0])):
                continue  # the declaration of a function that returns one
            yield name, text.count("\n", 0, match.start()) + 1, inside, text[end + 1:end + 200]


def is_copy(inside):
    """Whether an Error is made from another one."""
    return len(inside) <= 1


def faults(inside, rest, name):
    if is_copy(inside):
        return
    for role, expression in zip(("what", "reason", "hint"), inside):
        text = literal(expression)
        if text is None:
            continue
        if role == "what" and not text:
            yield "it does not say what failed"
        if text.endswith((".", "!", " ", "\\n")) and not text.endswith("…"):
            yield f"the {role} ends with '{text[-1]}'"
        if re.search(r"\b[a-z]+::|\b0x|\w\(\)|\berrno\b", text):
            yield f"the {role} has an internal name"
        if not name.startswith("src/cli/") and re.search(r"(?:^|[\s`'])--[a-z]", text):
            yield f"the {role} names an option, which only src/cli knows: say it with a Remedy"


def has_hint(inside, rest):
    given = len(inside) > 2 and inside[2] not in ("{}", '""')
    return given or re.match(r"\s*\)?\s*\.mended_by\(", rest) is not None


def read_table(path):
    """Returns [(file, words, why)]: the places that need no hint."""
    table = []
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            table.append(tuple(part.strip() for part in line.split(" | ")))
    return table


def main():
    root = pathlib.Path(sys.argv[1])
    table = read_table(pathlib.Path(__file__).with_name("errors.txt"))
    used, wrong, made, without = set(), [], 0, 0
    for name, line, inside, rest in places(root):
        made += 1
        place = f"{name}:{line}"
        for fault in faults(inside, rest, name):
            wrong.append(f"{place}: {fault}: {', '.join(inside)}")
        if is_copy(inside) or has_hint(inside, rest):
            continue
        words = ", ".join(inside)
        fits = [entry for entry in table if entry[0] == name and entry[1] in words]
        used.update(fits)
        without += 1
        if not fits:
            wrong.append(f"{place}: no hint and no remedy, and errors.txt does not say why: {words}")
    for entry in table:
        if entry not in used:
            wrong.append(f"errors.txt: no place without a hint fits: {' | '.join(entry)}")
        if len(entry) != 3 or not entry[2]:
            wrong.append(f"errors.txt: a line is FILE | WORDS | WHY: {' | '.join(entry)}")
    placed = sum(len(PLACED.findall(blank_comments(path.read_text()))) for path in (root / "src").rglob("*.cpp"))
    if made < 250 or placed < 50:
        wrong.append(f"only {made} and {placed} places were found: this check does not see them any more")
    print("\n".join(wrong) if wrong else
          f"{made} places make an error, {without} of them without a hint for a reason; {placed} more name a place in a file")
    sys.exit(1 if wrong else 0)


main()
