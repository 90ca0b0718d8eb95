"""attach.py SOCKET: the user's end of a debugger that waits in a job (debugger.py). On a terminal with what readline gives: editing and
history. From a pipe each line is a command, which is printed behind the prompt; at the end of the pipe the rank keeps waiting.

Exits with 0: the rank goes on; 10: it keeps waiting, as this was left by Ctrl-C or the pipe has ended, or another one has attached (11);
12: its process is gone; 13: it no longer waits there.
"""
import json
import os
import queue
import signal
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


LEFT = 10


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
    """The main thread asks for lines. Another reads what the debugger sends, and a third waits for Ctrl-C: readline notices a signal only
    while it waits for a key, so one that comes just before would be lost."""

    def __init__(self, channel):
        self._channel = channel
        self._prompts = queue.Queue()
        self._asks = False

    def run(self):
        interrupts, from_handler = socket.socketpair()
        from_handler.setblocking(False)
        signal.set_wakeup_fd(from_handler.fileno())
        signal.signal(signal.SIGINT, lambda *_: None)
        threading.Thread(target=self._await_interrupt, args=(interrupts,), daemon=True).start()
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

    def _await_interrupt(self, interrupts):
        interrupts.recv(1)
        self._asks = True  # the cursor stands behind ^C
        self._end(LEFT)

    def _end(self, code):
        if self._asks:
            print(flush=True)
        os._exit(code)  # the main thread may be waiting for a key; the terminal's modes end with it

    def _ask(self, prompt):
        typed = sys.stdin.isatty()
        try:
            line = input(prompt)
        except EOFError:
            if not typed:
                self._end(LEFT)
            print()
            return {"leave": True}
        if not typed:
            print(line, flush=True)
        return {"line": line}


def main():
    try:
        channel = connect(sys.argv[1])
    except OSError as error:
        print("remote: %s" % error, file=sys.stderr)
        return 13
    Session(channel).run()


sys.exit(main())
