# Replaces this process with the agent, which runs from memory if no folder allows programs to run.
#   run_agent.py PROGRAM WORD…   the copy in .bin of the jobs folder
#   -c TEXT MEMORY               for bootstrap.sh. MEMORY: "memory", the digest, the number of bytes on stdin, the program's size (if they differ,
#     xz compressed it), the file that already has the program or nothing, and on the next line why no folder could be used
import hashlib, os, subprocess, sys


def hold(program):
    if hasattr(os, "memfd_create"):
        memory = os.memfd_create("remote-agent")
    else:  # before Python 3.8
        import ctypes
        memory = ctypes.CDLL(None).memfd_create(b"remote-agent", 1)
    with open(memory, "wb", closefd=False) as file:
        file.write(program)
    return "/proc/self/fd/%d" % memory


def read(path):
    with open(path, "rb") as file:
        return file.read()


if len(sys.argv) > 2:
    words = ["remote-agent"] + sys.argv[2:]
    try:
        os.execv(sys.argv[1], words)
    except OSError:
        os.execv(hold(read(sys.argv[1])), words)
words, _, why = sys.argv[1].partition("\n")
_, digest, packed, size, staged = words.split(" ", 4)
try:
    if staged:
        program = read(staged)
        os.unlink(staged)
        try:
            os.rmdir(os.path.dirname(staged))
        except OSError:
            pass
    else:
        program = b""
        while len(program) < int(packed):
            piece = os.read(0, min(8192, int(packed) - len(program)))
            if not piece:
                sys.exit(1)
            program += piece
            os.write(1, b"\n")
        if packed != size:
            environment = {name: os.environ[name] for name in os.environ if name not in ("XZ_OPT", "XZ_DEFAULTS")}
            xz = subprocess.Popen(["xz", "-dc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
            program, _ = xz.communicate(program)
    if hashlib.sha256(program).hexdigest() != digest:
        raise ValueError("the program did not arrive whole")
    path = hold(program)
    if os.spawnv(os.P_WAIT, path, ["remote-agent", "try"]) != 42:
        raise OSError("the program does not run there")
    os.execv(path, ["remote-agent", "serve"])
except Exception as error:
    print("\n@remote-agent failed " + why + "; memory: " + str(error))
    sys.exit(1)
