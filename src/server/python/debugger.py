"""breakpoint() in a job waits here for `remote attach` (attach.py). sitecustomize.py loads this file at the first call.

In the folder `debug` (0700) of the job's folder, each waiting thread has a socket N.PID.sock and a file N.PID, which describes
where it waits: docs/protocol.md, "A debugger". Messages are lines of JSON. To attach.py: {"text"}; {"prompt"}, which asks for a
line; {"over"}, the rank continues; and {"taken"}, another client has attached. From attach.py: {"line"}; {"leave"} for Ctrl-D.
"""
import atexit
import itertools
import json
import os
import pdb
import select
import socket
import struct
import sys
import threading
import time

_numbers = itertools.count(1)
_own = threading.local()
_open = set()
_patience = 10  # seconds for a client to read the data sent to it


class _Lost(Exception):
    pass


class _Client:
    def __init__(self, connection):
        self._socket = connection
        self._received = b""
        connection.settimeout(_patience)

    def fileno(self):
        return self._socket.fileno()

    def send(self, **message):
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise _Lost() from error

    def message(self):
        """The next message; None if it is incomplete."""
        try:
            data = self._socket.recv(4096)
        except OSError as error:
            raise _Lost() from error
        self._received += data
        if not data or len(self._received) > 65536:
            raise _Lost()
        line, end, rest = self._received.partition(b"\n")
        if not end:
            return None
        self._received = rest
        try:
            message = json.loads(line.decode())
        except ValueError:
            raise _Lost()
        return message if isinstance(message, dict) else {}

    def close(self, shut=True):
        if shut:  # because a child may have inherited it
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._socket.close()


class _Wire:
    """The files that pdb reads and writes. If no client is attached, reading waits for one."""

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, job, greet):
        self._job = job
        self._greet = greet  # prints where the rank is, for a client that attaches later
        self._pid = os.getpid()
        self._listener = None
        self._client = None
        self._text = ""

    def is_own(self):
        return self._pid == os.getpid()

    def isatty(self):
        return False

    def write(self, text):
        self._text = (self._text + text)[-65536:] if self._client is None else self._text + text
        return len(text)

    def flush(self):
        pass

    def open(self, line, error, file):
        """From now on, the job's state shows that it waits there. Returns whether this is new."""
        if not self.is_own():  # this is a fork, and everything belongs to the parent
            self.close(over=False, forked=True)
        self._pid = os.getpid()
        folder = os.path.join(self._job, "debug")
        new = self._listener is None
        if new:
            os.makedirs(folder, 0o700, exist_ok=True)
            self._name = "%d.%d" % (next(_numbers), self._pid)
            self._path = os.path.join(folder, self._name)
            at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                # a socket's address has at most 108 bytes, and the working directory must not be changed
                self._listener.bind("/proc/self/fd/%d/%s.sock" % (at, self._name))
            finally:
                os.close(at)
            os.chmod(self._path + ".sock", 0o600)
            self._listener.listen(4)
            _open.add(self)
        with open("/proc/self/stat") as stat:
            start = stat.read().rpartition(")")[2].split()[19]
        rank = os.environ.get("RANK", "")
        text = "%d %s %s %d %s %s" % (self._pid, start, rank if rank.isdigit() else "-", line, error or "-", file)
        part = os.path.join(folder, "." + self._name)
        with open(part, "w", errors="backslashreplace") as record:
            record.write("".join(c if c.isprintable() else "?" for c in text) + "\n")
        os.chmod(part, 0o600)
        os.replace(part, self._path)
        return new

    def close(self, over=True, forked=False):
        if self._client is not None:
            if over:
                try:
                    self._send_text()
                    self._client.send(over=True)
                except _Lost:
                    pass
            self._client.close(shut=not forked)
            self._client = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            _open.discard(self)
            if self.is_own():
                for path in (self._path, self._path + ".sock"):
                    try:
                        os.unlink(path)
                    except OSError:
                        pass

    def _send_text(self):
        text, self._text = self._text, ""
        if text:
            self._client.send(text=text)

    def _accept(self):
        try:
            connection, _ = self._listener.accept()
        except OSError:  # no descriptor is free
            time.sleep(0.2)
            return
        uid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        if uid != os.geteuid():
            connection.close()
            return
        try:
            if self._client is not None:
                self._client.send(taken=True)
        except _Lost:
            pass
        if self._client is not None:
            self._client.close()
        self._client = _Client(connection)

    def is_attached(self):
        return self._client is not None

    def readline(self, *_, question=False):
        """Returns the next line. If a client leaves, the answer to a question is empty."""
        text, _, prompt = self._text.rpartition("\n")
        self._text = text + "\n" if text else ""
        asked = None  # the client that has received the prompt
        while True:
            try:
                if self._client is not None and self._client is not asked:
                    if asked is not None:
                        self._text = ""
                        self._greet()
                    self._send_text()
                    self._client.send(prompt=prompt)
                    asked = self._client
                ready, _, _ = select.select([one for one in (self._listener, self._client) if one is not None], [], [])
                if self._listener in ready:
                    self._accept()
                    continue
                message = self._client.message()
            except _Lost:
                self._client.close()
                self._client = None
                self._text = ""
                if question:
                    return ""
                asked = asked or self
                continue
            if message is None:
                continue
            if message.get("leave"):
                return ""  # EOF for pdb
            if "line" in message:
                return str(message["line"]) + "\n"


class _Debugger(pdb.Pdb):
    def __init__(self, job, error=""):
        self._wire = _Wire(job, self._greet)
        pdb.Pdb.__init__(self, stdin=self._wire, stdout=self._wire, nosigint=True)
        self.use_rawinput = False
        self._error = error
        self._place = None
        self._leaves = False

    def stop_at(self, frame, header):
        if header:
            self.message(header)
        self._place = frame.f_code.co_filename, frame.f_lineno
        self.set_trace(frame)

    def _greet(self):
        self.print_stack_entry(self.stack[self.curindex])

    def interaction(self, frame, trace):
        if trace is not None:
            last = trace
            while last.tb_next is not None:
                last = last.tb_next
            place = last.tb_frame.f_code.co_filename, last.tb_lineno
        else:
            place = self._place or (frame.f_code.co_filename, frame.f_lineno)
        self._place = None
        file = _short(place[0])
        why = "pdb after " + self._error if self._error else "breakpoint()"
        try:
            if self._wire.open(place[1], self._error, file):
                rank = os.environ.get("RANK", "")
                _say("remote: waiting in %s at %s:%d: remote attach %s" % (why, file, place[1], rank if rank.isdigit() else ""))
        except OSError as error:
            _say("remote: cannot wait in %s at %s:%d: %s" % (why, file, place[1], error))
            self._wire.close()
            self.set_continue()
            return
        self._leaves = self._error != ""
        try:
            pdb.Pdb.interaction(self, frame, trace)
        except BaseException:
            self._leaves = True
            raise
        finally:
            if self._leaves:
                self._wire.close()

    def _cmdloop(self):
        self.cmdloop()  # a waiting rank ends at SIGINT, while pdb's own method would ask again

    def do_continue(self, argument):
        self._leaves = True
        return pdb.Pdb.do_continue(self, argument)

    do_c = do_cont = do_continue

    def do_EOF(self, argument):
        """Ctrl-D
        Lets the rank go on and leaves; breakpoints that were set here are gone."""
        self.clear_all_breaks()
        return self.do_continue(argument)

    do_detach = do_EOF

    def do_quit(self, argument):
        """q(uit)
        Ends this rank by the exception BdbQuit, after a question."""
        while not self._error:
            self._wire.write("This ends the rank, and with it the launch; c lets it continue. End it? [y/N] ")
            answer = self._wire.readline(question=True).strip().lower()
            if answer in ("y", "yes"):
                break
            if answer in ("", "n", "no"):
                if not self._wire.is_attached():
                    self._greet()  # for the next client
                return None
            self._wire.write("Please answer y or n.\n")
        self._leaves = True
        return pdb.Pdb.do_quit(self, argument)

    do_q = do_exit = do_quit

    def do_run(self, argument):
        """run
        Not in a job."""
        self.error("a job cannot be started again from here")

    do_restart = do_run

    def do_interact(self, argument):
        files = sys.stdin, sys.stdout, sys.stderr
        sys.stdin = sys.stdout = sys.stderr = self._wire
        try:
            return pdb.Pdb.do_interact(self, argument)
        finally:
            sys.stdin, sys.stdout, sys.stderr = files


def _short(file):
    """The path relative to the working directory, if it is inside."""
    here = os.getcwd() + os.sep
    return file[len(here) :] if file.startswith(here) else file


def _say(text):
    try:
        print(text.rstrip(), file=sys.__stdout__, flush=True)
    except (OSError, ValueError, AttributeError, UnicodeError):
        pass


def _close_all():
    for wire in list(_open):
        if wire.is_own():
            wire.close()


atexit.register(_close_all)


def stop_at(job, frame, header=None):
    """Called by breakpoint() and pdb.set_trace(): the thread stops there. There is one debugger per thread."""
    if getattr(_own, "debugger", None) is None:
        _own.debugger = _Debugger(job)
    _own.debugger.stop_at(frame, header)


def _note_error(job):
    """Records when the first rank of the job failed, because its result is only written after the user has left pdb."""
    try:
        with open(os.path.join(job, "raised"), "x") as file:
            file.write("%d\n" % (time.time() * 1000))
    except OSError:
        pass


def post_mortem(job, kind, trace):
    """Waits where this exception was raised, until a client has attached and left."""
    _note_error(job)
    sys.settrace(None)
    debugger = _Debugger(job, "".join(c if c.isidentifier() or c in ".0123456789" else "?" for c in kind.__name__))
    debugger.reset()
    try:
        debugger.interaction(None, trace)
    finally:
        sys.settrace(None)
