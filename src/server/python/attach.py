"""attach.py SOCKET: the terminal's end of a debugger that waits in a job (debugger.py), with what readline gives: editing and history.

Exits with 0: the rank goes on; 10: it keeps waiting, as this was left by Ctrl-C or somebody else has attached (11); 12: its process is
gone; 13: it does not wait there any more.
"""
import json
import os
import queue
import socket
import struct
import sys
import threading

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


class Session:
    """A thread reads what the debugger sends, and ends this program; the main thread, the only one that Ctrl-C reaches, asks for lines. So
    what comes while it asks is not missed."""

    def __init__(self, channel):
        self._channel = channel
        self._prompts = queue.Queue()
        self._asks = False

    def run(self):
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        while True:
            prompt = self._prompts.get()
            self._asks = True
            answer = self._ask(prompt)
            self._asks = False
            try:
                self._channel.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                reader.join()  # it knows why

    def _read(self):
        try:
            for line in self._channel.makefile("r", encoding="utf-8", errors="replace"):
                message = json.loads(line)
                if "text" in message:
                    sys.stdout.write(message["text"])
                    sys.stdout.flush()
                elif "over" in message:
                    self._end(0)
                elif "taken" in message:
                    self._end(11)
                elif "prompt" in message:
                    self._prompts.put(message["prompt"])
        finally:  # whatever went wrong: the main thread would wait for ever
            self._end(12)

    def _end(self, code):
        if self._asks:
            print(flush=True)
        os._exit(code)  # the main thread may be waiting for a key; the terminal's modes end with it

    @staticmethod
    def _ask(prompt):
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
        Session(channel).run()
    except KeyboardInterrupt:
        print()
        return 10


sys.exit(main())
