"""attach.py SOCKET: the terminal's end of a debugger that waits in a job (debugger.py), with what readline gives: editing and history.

Exits with 0: the rank goes on; 10: it keeps waiting, as this was left by Ctrl-C or somebody else has attached (11); 12: its process is
gone; 13: it does not wait there any more.
"""
import json
import os
import socket
import struct
import sys

try:
    import readline

    # what the laptop shows is text alone
    readline.parse_and_bind("set bell-style none")
    readline.parse_and_bind("set enable-bracketed-paste off")
except ImportError:
    pass


def connect(path):
    folder, name = os.path.split(path)
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    status = os.fstat(at)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise OSError("others can change " + folder)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    channel.connect("/proc/self/fd/%d/%s" % (at, name))
    os.close(at)
    if struct.unpack("3i", channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] != os.geteuid():
        raise OSError("the socket is not this user's")
    return channel


def serve(channel):
    for line in channel.makefile("r", encoding="utf-8", errors="replace"):
        message = json.loads(line)
        if "text" in message:
            sys.stdout.write(message["text"])
            sys.stdout.flush()
        elif "over" in message:
            return 0
        elif "taken" in message:
            return 11
        elif "prompt" in message:
            answer = ask(message["prompt"])
            channel.sendall(json.dumps(answer).encode() + b"\n")
    return 12


def ask(prompt):
    try:
        return {"line": input(prompt)}
    except EOFError:
        print()
        return {"leave": True}


def main():
    try:
        channel = connect(sys.argv[1])
    except OSError as error:
        print("remote: %s" % error, file=sys.stderr)
        return 13
    try:
        return serve(channel)
    except KeyboardInterrupt:
        print()
        return 10
    except (OSError, ValueError):
        return 12


sys.exit(main())
