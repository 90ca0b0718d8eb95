#!/bin/sh
# Fails if a call of std::filesystem under src/ can throw, because its error says neither what failed nor what to try.
# Each call must take a std::error_code, or use base/paths.hpp, whose errors are remote::Error. A loop over a
# directory_iterator can also throw when it advances; entries_of() does not. Usage: filesystem.sh SOURCE_DIR
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
exec python3 - "${1:?source folder}" <<'END'
import pathlib
import re
import sys

FUNCTIONS = (
    "absolute canonical weakly_canonical relative proximate copy copy_file copy_symlink create_directory create_directories create_directory_symlink "
    "create_hard_link create_symlink current_path equivalent exists file_size hard_link_count is_block_file is_character_file is_directory is_empty "
    "is_fifo is_other is_regular_file is_socket is_symlink last_write_time permissions read_symlink remove remove_all rename resize_file space status "
    "symlink_status temp_directory_path directory_iterator recursive_directory_iterator directory_entry"
)
CALL = re.compile(r"\b(?:fs|filesystem)::(%s)\b(?: +\w+)?(?=[({])" % "|".join(FUNCTIONS.split()))
MEMBER = re.compile(r"\bentry(?:\.|->)(?:exists|is_\w+|file_size|last_write_time|status|symlink_status|refresh)(?=\()")
LOOP = re.compile(r"\bfor \([^;{}]*:\s*(?:std::)?(?:fs|filesystem)::(?:recursive_)?directory_iterator\b")
ANSWERED = re.compile(r"^(?:\w+_)?status\b|\b(?:fs|filesystem)::(?:symlink_)?status\(")  # exists(file_status) and its like do not throw


def arguments(text, start):
    """Between the bracket at `start` and the one that closes it, split at the commas between them."""
    parts, depth, quoted = [""], 0, None
    for at in range(start, len(text)):
        char = text[at]
        if quoted:
            quoted = None if char == quoted and text[at - 1] != "\\" else quoted
        elif char in "\"'":
            quoted = char
        elif char in "({[":
            depth += 1
            if depth == 1:
                continue
        elif char in ")}]":
            depth -= 1
            if depth == 0:
                return [part.strip() for part in parts]
        elif char == "," and depth == 1:
            parts.append("")
            continue
        parts[-1] += char
    return parts


def findings(text):
    text = re.sub(r"//[^\n]*", lambda comment: " " * len(comment.group()), text)
    codes = set(re.findall(r"\berror_code&? (\w+)", text))
    for pattern in (CALL, MEMBER):
        for call in pattern.finditer(text):
            given = arguments(text, call.end())
            if given[-1] in codes or (len(given) == 1 and ANSWERED.search(given[0])) or given == [""] and pattern is CALL and "iterator" in call.group():
                continue
            yield call.start()
    for loop in LOOP.finditer(text):
        yield loop.start()


def lines(root):
    for file in sorted(root.rglob("*.[ch]pp")):
        text = file.read_text()
        for number in sorted({text.count("\n", 0, at) for at in findings(text)}):
            yield "%s:%d: %s" % (file.relative_to(root), number + 1, text.splitlines()[number].strip())


PROOF = """std::error_code ec; std::error_code& other;
fs::exists(a);
std::filesystem::remove(f(a, ec));
fs::absolute(project).lexically_normal();
fs::is_symlink(a / "b, ec");
const fs::directory_iterator folder(a);
for (const auto& entry : fs::directory_iterator(a, ec)) {
if (entry.is_directory()) {
fs::exists(fs::status(a));
fs::exists(a, ec); fs::rename(a, b, other); fs::exists(fs::status(a, ec)); fs::is_directory(status); fs::directory_iterator(a, ec); entry.is_directory(ec);
fs::directory_iterator() // fs::exists(a)
"""
found = sorted({PROOF.count("\n", 0, at) for at in findings(PROOF)})
if found != [1, 2, 3, 4, 5, 6, 7, 8]:
    sys.exit("filesystem: the rules of tests/lint/filesystem.sh find lines %s of their proof" % found)
bad = [line for folder in ("src", "include") for line in lines(pathlib.Path(sys.argv[1]) / folder)]
if bad:
    print("\n".join(bad))
    sys.exit("  these throw: pass a std::error_code, or use base/paths.hpp")
print("filesystem: no call throws")
END
