"""The ranks' collectives in PyTorch's flight recorder (NCCL, torch 2.5 and later). Requests a dump from each rank through its
pipe, and prints the last collectives of each process group. sitecustomize.py has enabled the recorder. The agent runs this
program, and parses a wire::FlightEntry in JSON from each line.

argv: the jobs folder, and ids. A dump is a pickle, and its file may have been written by any program. So no global is looked up,
memory is limited, and texts only become part of the answer as words.
"""
import json
import os
import pickle
import re
import resource
import stat
import sys
import time

ANSWER_SECONDS = 12  # a rank reads its pipe every second, and its first dump took four more seconds on an H100
MOST_BYTES = 64 << 20
MOST_MEMORY = 2 << 30
MOST_RANKS = 64
LAST = 32  # collectives per group
RECENT_NS = 4 * 10**9  # newer collectives are not stuck, because a healthy launch always has one
OLD_NS = 60 * 10**9
FIELDS = "rank", "group", "number", "state", "function", "types", "shapes"


class Data(pickle.Unpickler):
    """Only numbers, texts, lists, tuples and dictionaries."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError("no data")

    def persistent_load(self, pid):
        raise pickle.UnpicklingError("no data")


def word(text):
    return re.sub("[^A-Za-z0-9_.:-]", "_", text)[:80] or "-" if isinstance(text, str) else "-"


def shapes_of(sizes):
    """"3x4,7" for [[3, 4], [7]]."""
    if not isinstance(sizes, (list, tuple)):
        return "-"
    shapes = []
    for one in sizes[:16]:
        numbers = [one] if isinstance(one, int) else one
        if not isinstance(numbers, (list, tuple)) or not all(isinstance(number, int) and 0 <= number < 1 << 63 for number in numbers):
            return "-"
        shapes.append("x".join(str(number) for number in numbers[:16]))
    return ",".join(shape for shape in shapes if shape) or "-"


def state_of(entry, now):
    state, began = word(entry.get("state")), entry.get("time_created_ns")
    if state == "completed" or not isinstance(began, int) or not now:
        return state
    return "recent" if now - began < RECENT_NS else "old" if now - began > OLD_NS else state


def collectives_of(dump, now=0):
    """(group, number, state, function, types, shapes) of the last collectives. Number 0 means that the rank belongs to that
    group. Skips entries in another format. `now` is when the dump was requested, in nanoseconds since the epoch; writing it may
    take seconds."""
    if not isinstance(dump, dict):
        return []
    groups = {}
    config = dump.get("pg_config")
    for name in config if isinstance(config, dict) else ():
        groups[word(name)] = {}
    entries = dump.get("entries")
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("is_p2p"):
            continue
        name, number, function = entry.get("process_group"), entry.get("collective_seq_id"), entry.get("profiling_name")
        if isinstance(name, (list, tuple)) and name:
            name = name[0]
        if not isinstance(name, str) or not isinstance(number, int) or not 0 < number < 1 << 60 or not isinstance(function, str):
            continue
        types = entry.get("input_dtypes")
        types = ",".join(word(one) for one in types[:16]) if isinstance(types, (list, tuple)) else ""
        found = state_of(entry, now), word(function.rpartition("nccl:")[2]), types or "-", shapes_of(entry.get("input_sizes"))
        groups.setdefault(word(name), {}).setdefault(number, found)
    rows = []
    for name, calls in sorted(groups.items())[:256]:
        rows.append((name, 0, "member", "-", "-", "-"))
        rows += [(name, number) + calls[number] for number in sorted(calls)[-LAST:]]
    return rows


def ask(pipe):
    """Returns whether a rank reads the pipe."""
    try:
        fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode) and os.write(fd, b"1\n") > 0
    except OSError:
        return False
    finally:
        os.close(fd)


def stamp(path):
    """Identifies the current version of a dump; None if there is none."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return (info.st_ino, info.st_mtime_ns, info.st_size) if stat.S_ISREG(info.st_mode) and 0 < info.st_size <= MOST_BYTES else None


def read(path):
    """Returns None if the dump is incomplete or invalid."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return Data(file).load()
    except Exception:  # the bytes may cause any exception
        return None


def main():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    waiting = {}
    for job in sys.argv[2:]:
        folder = os.path.join(sys.argv[1], job, "flight")
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            rank = re.match(r"pipe\.([0-9]{1,9})\.pipe$", name)
            if rank and len(waiting) < MOST_RANKS:
                path = os.path.join(folder, "rank." + rank.group(1))
                before = stamp(path)
                if ask(os.path.join(folder, name)):
                    waiting[(job, rank.group(1))] = path, before, time.time_ns()
    limit = time.monotonic() + ANSWER_SECONDS
    while waiting and time.monotonic() < limit:
        time.sleep(0.1)
        for (job, rank), (path, before, asked) in list(waiting.items()):
            dump = read(path) if stamp(path) not in (None, before) else None
            if dump is not None:
                del waiting[(job, rank)]
                for row in collectives_of(dump, asked):
                    print(json.dumps(dict(zip(FIELDS, (int(rank),) + row))))


if __name__ == "__main__":
    main()
