"""The lifeline of a launch: its servers tell each other of a failure, without the laptop.

One such process a server and launch, started by start.sh beside the supervisors, in a session of its own and
without the cookie of any job. The one on the first server is the hub: it listens, the others hold a connection to
it. What it needs comes on stdin, as lines of a key and values; the token among them proves who belongs to the launch, is never
sent, is not among the arguments, and in files of the jobs' folders only as long as the launch runs. A message is a line "TEXT MAC"; the MAC's key is made of the
token and of a random number of either side, and the MAC covers direction and number of the message, so that no
line of a stranger and no old line is believed. docs/protocol.md tells the messages.

argv: the jobs' folder, and the script that ends jobs. Python 3.6 or later, standard library only, and little of it: hashlib
(it loads OpenSSL), json, secrets, selectors, socket and subprocess would take three times as long to import as Python takes
to start, on all servers of a launch at once.
"""
import _socket as socket
import _thread
import errno
import fcntl
import os
import select
import stat
import sys
import time
from _operator import _compare_digest as compare_digest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # with -I, Python does not look there
from lifeline_orders import Orders, keep_order, quote, unquote

try:
    from _sha2 import sha256  # since Python 3.12
except ImportError:
    try:
        from _sha256 import sha256
    except ImportError:  # a Python that was built without it
        from hashlib import sha256

LINE_LIMIT = 4096
ORDER_LIMIT = 131072  # of a line from the hub that has proved itself
STRANGERS = 256  # connections that have not proved anything yet
CONNECT_SECONDS = 2
PROOF_SECONDS = 10
FIRST_SECONDS = 1.5  # so long a hub that is not there yet is no news
NEWS_SECONDS = 3  # and so long a member
KILL_GRACE = 5  # between TERM and KILL
INNER, OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))


def hmac(key, text):
    """HMAC-SHA256 (RFC 2104)."""
    block = (sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    return sha256(block.translate(OUTER) + sha256(block.translate(INNER) + text.encode()).digest())


def addresses(address, port):
    """As socket.getaddrinfo, which would import a lot for a name that is ASCII."""
    host = address.encode("ascii" if all(c < "\x80" for c in address) else "idna")
    return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)


def read_words(path):
    """The blank-separated words of a file's first line; none for a file that is not there."""
    try:
        with open(path, "rb") as file:
            line = file.readline()
    except OSError:
        return []
    return line.decode(errors="replace").split() if line.endswith(b"\n") else []


def read_second(name):
    """The same of a file in the second place, as second_file() of lib.sh."""
    for place in ("/var/tmp", "/tmp", "/dev/shm"):
        folder = "%s/remote-%d" % (place, os.getuid())
        path = os.path.join(folder, name)
        try:
            infos = os.lstat(folder), os.lstat(path)
        except OSError:
            continue
        if all(info.st_uid == os.geteuid() and not stat.S_ISLNK(info.st_mode) for info in infos):
            return read_words(path)
    return []


def lives(pid, start):
    """Whether that very process lives: as alive() of lib.sh."""
    try:
        with open("/proc/%d/stat" % int(pid), "rb") as file:
            fields = file.read().rpartition(b") ")[2].decode().split()
    except (OSError, ValueError):
        return False
    return len(fields) > 19 and fields[19] == start and fields[0] not in "ZXx"


def remove_init_file(job_folder):
    """Removes the launch's shared file, as leave_init_file() of init_file.sh, whichever jobs are not known to have ended."""
    try:
        with open(os.path.join(job_folder, "init_file"), "rb") as file:
            path = file.read().split(b"\n")[1]
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except (OSError, IndexError):
        return
    try:
        with open("/proc/self/fd/%d/launch" % folder, "rb") as file:
            if path.rpartition(b"/.remote-init-")[2] != file.read().strip():
                return
        for name in os.listdir(folder):
            if name in ("store", "launch") or name.startswith("ended."):
                os.unlink(name, dir_fd=folder)
        os.rmdir(path)
    except OSError:
        pass
    finally:
        os.close(folder)


class Job:
    """One job of this server, as its folder tells."""

    def __init__(self, folder, job_id, rank):
        self.folder = os.path.join(folder, job_id)
        self.id = job_id
        self.rank = rank
        self.ended = False
        self.failed = False
        self.supervisor = self.main = ()
        # The supervisor holds .alive open for writing: its end comes as an end of file, at once and for nothing.
        try:
            self.fifo = os.open(os.path.join(self.folder, ".alive"), os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            self.fifo = None

    def result(self):
        words = read_words(os.path.join(self.folder, "result")) or read_second(self.id + ".result")
        return words if len(words) >= 2 else None  # the time may be missing

    def look(self):
        """Whether it has ended, and the failure in words, or None. It reads files, which may take its time; it changes nothing that others read."""
        result = self.result()
        if result is None:
            if read_words(os.path.join(self.folder, "backend")):
                return False, None  # not `local`: its processes need not be on this machine
            # Where the folder is not to be seen any more, what it told before counts.
            seen = os.path.isdir(self.folder)
            self.supervisor = read_words(os.path.join(self.folder, "supervisor")) or self.supervisor
            self.main = read_words(os.path.join(self.folder, "pid")) or self.main
            if seen and len(self.supervisor) < 3:
                return False, None
            if any(len(process) > 1 and lives(*process[:2]) for process in (self.supervisor, self.main)):
                return False, None
            if not seen:
                return True, None  # removed
            result = self.result() or ["gone", "0", str(int(time.time()))]
        stopped = os.path.exists(os.path.join(self.folder, "stop")) or read_second(self.id + ".stop")
        if stopped or result[0] == "never" or result[:2] == ["exit", "0"]:
            return True, None
        return True, " ".join(result)


class Looker:
    """Looks at jobs in a thread of its own: files may lie on slow storage, and who watches the other servers must not wait for them."""

    def __init__(self):
        self.ready, self.wake = os.pipe()
        self.began = 0.0
        self.busy = False
        self.found = []

    def begin(self, jobs):
        """Nothing while it still looks."""
        if not self.busy:
            self.busy = True
            self.began = time.monotonic()
            _thread.start_new_thread(self.look, (jobs,))

    def look(self, jobs):
        try:
            self.found = [(job,) + job.look() for job in jobs]
        finally:
            os.write(self.wake, b".")

    def take(self):
        """What was found, as (job, ended, failure)."""
        os.read(self.ready, 1)
        self.busy = False
        found, self.found = self.found, []
        return found


class Link:
    """A connection to a peer: lines with MACs, both ways, without ever waiting."""

    def __init__(self, sock, token, is_hub):
        self.sock = sock
        self.token = token
        self.is_hub = is_hub
        self.nonce = os.urandom(16).hex()
        self.key = None
        self.sent = 0
        self.received = 0
        self.incoming = b""
        self.outgoing = b""
        self.name = None  # on the hub: the server at the other end, once it has proved itself
        self.heard = time.monotonic()
        self.open = True
        self.greeted = False  # something that is proved has come
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.raw("lifeline1 " + self.nonce)

    def raw(self, text):
        self.outgoing += text.encode() + b"\n"
        self.flush()

    def mac(self, from_hub, number, text):
        what = "%s %d %s" % ("hub" if from_hub else "member", number, text)
        return hmac(self.key, what).hexdigest()

    def send(self, text):
        if self.open and self.key is not None:
            self.raw(text + " " + self.mac(self.is_hub, self.sent, text))
            self.sent += 1

    def flush(self):
        while self.open and self.outgoing:
            try:
                count = self.sock.send(self.outgoing)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.close()
                return
            self.outgoing = self.outgoing[count:]

    def receive(self):
        """The messages that have come; closes the link at its end and for anything that is not right."""
        try:
            data = self.sock.recv(65536)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            data = b""
        if not data:
            self.close()
            return []
        self.incoming += data
        *lines, self.incoming = self.incoming.split(b"\n")
        messages = []
        for line in lines:
            text = self.check(line.decode("ascii", "replace"))
            if text is None:
                self.close()
                return messages
            if text:
                messages.append(text)
        if len(self.incoming) > (ORDER_LIMIT if self.greeted and not self.is_hub else LINE_LIMIT):
            self.close()
        return messages

    def check(self, line):
        if self.key is None:
            greeting, _, nonce = line.partition(" ")
            # its own number back would be its own messages back
            if greeting != "lifeline1" or len(nonce) != 32 or nonce == self.nonce:
                return None
            nonces = [self.nonce, nonce] if self.is_hub else [nonce, self.nonce]
            self.key = hmac(self.token, " ".join(nonces)).digest()
            return ""
        text, _, mac = line.rpartition(" ")
        wanted = self.mac(not self.is_hub, self.received, text)
        if not compare_digest(wanted.encode(), mac.encode()):
            return None
        self.received += 1
        self.heard = time.monotonic()
        return text

    def close(self):
        # The descriptor itself goes with Lifeline.drop, after the poll object has let go of its number.
        self.open = False


class Lifeline:
    def __init__(self, request, folder, kill_script):
        self.folder = folder
        self.kill_script = kill_script
        self.token = request["token"][0].encode()
        self.own = request["server"][0]
        self.hub = request["servers"][0]
        self.is_hub = self.own == self.hub
        self.others = [name for name in request["servers"] if name != self.own]
        self.address = request["address"][0]
        self.whole = "whole" in request  # all servers of the launch have a lifeline
        self.port = int(request["port"][0])
        self.grace = float(request["grace"][0])
        self.timeout = float(request["timeout"][0])
        # Of an elastic launch: how many servers it needs. 0: all of them, and nothing may fail.
        self.needed = int(request.get("needed", ["0"])[0])
        self.beat = min(5.0, self.timeout / 6)
        self.time_to_come = min(30.0, self.timeout)  # for the first connection
        ids_and_ranks = request["jobs"]
        self.jobs = [Job(folder, job, int(rank)) for job, rank in zip(ids_and_ranks[::2], ids_and_ranks[1::2])]
        self.start = time.monotonic()
        self.looker = Looker()
        self.next_look = 0.0
        self.looked = 0.0  # when the last look began whose findings are known
        self.killed = 0.0  # when the killer had ended
        self.poll = select.poll()
        self.watched = {}  # by descriptor: a job, a link, or the listener
        self.listener = None
        self.deaf_until = 0.0  # accepts nobody until then: no file can be opened
        self.links = []  # the hub's: one a member and strangers; a member's: the one to the hub
        self.last_heard = {}  # of servers that have been here
        self.gone = {}  # servers that have said good bye, or are lost
        self.failed_there = set()  # the hub's: servers where a job has failed
        self.left = set()  # the hub's, of an elastic launch: servers that it has gone on without
        self.ways = []  # a member's: addresses of the hub that are still to be tried, and since when one is
        self.connecting = None
        self.connecting_since = 0.0
        self.next_try = 0.0
        self.refused = ""
        self.next_beat = 0.0
        self.by = None  # why the jobs are to be ended, once they are
        self.own_left = False  # an elastic launch goes on without this server
        self.left_by = ""  # why
        self.told = False
        self.end_at = 0.0
        self.killer = None
        self.kills = 0
        self.status = None
        self.lock = None
        words = request.get("mpi", [])
        self.hosts = dict(zip(words[::2], words[1::2]))  # the servers, by what mpirun calls them
        self.orders = None

    # ---- what is told to others: files in each job's folder

    def write(self, name, text):
        for job in self.jobs:
            try:
                part = os.path.join(job.folder, "." + name)
                with open(part, "wb") as file:
                    file.write(text.encode() + b"\n")
                os.rename(part, os.path.join(job.folder, name))
            except OSError:
                pass

    def tell(self, status):
        if status != self.status:
            self.status = status
            self.write("lifeline", status)

    def enlist(self):
        """Puts this process on record; False when another one of this launch and server stands already."""
        for job in self.jobs:
            try:
                self.lock = os.open(os.path.join(job.folder, "lifeline.request"), os.O_RDONLY)
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                continue
            break
        with open("/proc/self/stat", "rb") as file:
            start = file.read().rpartition(b") ")[2].decode().split()[19]
        boot = read_words("/proc/sys/kernel/random/boot_id") or ["unknown"]
        self.write("lifeline.pid", "%d %s %s" % (os.getpid(), start, boot[0]))
        return True

    def leave(self):
        """At the regular end: nobody is to start this again, and the secret is of no use any more."""
        # Where a server was lost, or a supervisor has died, its jobs have not told that they need the file no longer. Of a server
        # without a lifeline nobody here knows.
        if self.is_hub and self.whole and all(name in self.gone for name in self.others):
            for job in self.jobs:
                remove_init_file(job.folder)
        for job in self.jobs:
            for name in ("lifeline.pid", "lifeline.request"):
                try:
                    os.unlink(os.path.join(job.folder, name))
                except OSError:
                    pass

    def tell_how_it_is(self):
        if self.is_hub:
            missing = [name for name in self.others if name not in self.last_heard]
            if self.others and self.listener is None:
                self.tell("unreachable: cannot listen: " + self.refused)
            elif self.deaf_until:
                self.tell("unreachable: cannot accept connections: " + self.refused)
            elif missing and time.monotonic() - self.start > min(NEWS_SECONDS, self.time_to_come):
                self.tell("waiting for " + ", ".join(missing))
            elif not missing:
                self.tell("ok")
        elif self.hub in self.last_heard:
            self.tell("ok" if self.links else "cut off from %s since %s" % (self.hub, self.refused))
        elif self.refused and time.monotonic() - self.start > min(FIRST_SECONDS, self.time_to_come):
            self.tell("unreachable: %s at %s:%d: %s" % (self.hub, self.address, self.port, self.refused))

    # ---- connections

    def watch(self, fd, what):
        self.watched[fd] = what
        self.poll.register(fd, select.POLLIN)

    def unwatch(self, fd):
        del self.watched[fd]
        self.poll.unregister(fd)

    def listen(self):
        for family, _, _, _, where in addresses(self.address, self.port):
            wildcard = ("::" if family == socket.AF_INET6 else "0.0.0.0", self.port)
            for place in (where, wildcard):  # an address that is translated on the way is not this server's own
                sock = socket.socket(family, socket.SOCK_STREAM)
                try:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    sock.bind(place)
                    sock.listen(128)
                except OSError as error:
                    self.refused = error.strerror or str(error)
                    sock.close()
                    continue
                sock.setblocking(False)
                self.listener = sock
                self.watch(sock.fileno(), sock)
                return

    def accept(self):
        """Takes many at once: a member must not wait long behind strangers."""
        for _ in range(STRANGERS // 4):
            strangers = [link for link in self.links if link.name is None]
            try:
                fd, _ = self.listener._accept()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    return
                if strangers:
                    self.drop(strangers[0])
                    continue
                # It is readable all the time now: not looked at for a second.
                self.refused = error.strerror
                self.unwatch(self.listener.fileno())
                self.deaf_until = time.monotonic() + 1
                return
            sock = socket.socket(self.listener.family, socket.SOCK_STREAM, 0, fd)
            if len(strangers) >= STRANGERS:
                self.drop(strangers[0])  # a member proves itself within a round trip: who waits longest, is none
            try:
                self.add(Link(sock, self.token, True))
            except OSError:
                sock.close()

    def connect(self, now):
        """Begins to connect to the hub, or looks how that stands; waits for nothing but a name's resolution."""
        if self.connecting is None:
            patient = self.hub not in self.last_heard and now - self.start > self.time_to_come
            # the hub's process may start a moment later than this one
            soon = 0.05 if now - self.start < FIRST_SECONDS else 0.5
            self.next_try = now + (30 if patient else min(soon, self.beat))
            try:
                self.ways = self.ways or addresses(self.address, self.port)
            except OSError as error:
                self.refused = self.refused or error.strerror or str(error)
                return
            family, kind, protocol, _, where = self.ways.pop(0)
            self.connecting = socket.socket(family, kind, protocol)
            self.connecting.setblocking(False)
            self.connecting_since = now
            failure = self.connecting.connect_ex(where)
            if failure in (0, errno.EINPROGRESS, errno.EINTR):
                self.poll.register(self.connecting.fileno(), select.POLLOUT)
                return
        else:
            self.poll.unregister(self.connecting.fileno())
            failure = self.connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failure == 0 and now - self.connecting_since >= CONNECT_SECONDS:
                failure = errno.ETIMEDOUT
        sock, self.connecting = self.connecting, None
        if failure:
            sock.close()
            self.refused = self.refused or os.strerror(failure)
            if self.ways:
                self.next_try = now
        else:
            self.ways = []
            self.add(Link(sock, self.token, False))

    def add(self, link):
        self.links.append(link)
        self.watch(link.sock.fileno(), link)

    def serve(self, link):
        had_key = link.key is not None
        messages = link.receive()
        if not self.is_hub and link.key is not None and not had_key:
            link.send("hello " + quote(self.own))
            self.report(link)
        for message in messages:
            self.understand(link, message)
        if not link.open:
            self.drop(link)

    def drop(self, link):
        if link not in self.links:
            return
        self.links.remove(link)
        self.unwatch(link.sock.fileno())
        link.close()
        link.sock.close()
        if not self.is_hub:
            self.refused = time.strftime("%H:%M:%S") if self.hub in self.last_heard else "it closes the connection"

    def understand(self, link, message):
        word, _, rest = message.partition(" ")
        if self.is_hub and word == "hello":
            name = unquote(rest)
            if name not in self.others:
                link.close()
                return
            for old in [other for other in self.links if other.name == name and other is not link]:
                self.drop(old)
            link.name = name
            link.send("welcome")
            self.report(link)
            if name in self.left:
                link.send("without %s %s" % (quote(name), quote("loss of " + name)))
            if self.orders is not None and name in self.orders.sent:
                link.send(self.orders.sent[name])  # the first one counts there
            if self.hosts and self.jobs_have_ended():
                link.send("run")
        elif self.is_hub and link.name is None:
            link.close()
            return
        if word == "end" and link.name in self.left:
            pass  # cut off from the others, its agent may have given up
        elif word == "end":
            by = unquote(rest)
            self.end(by, 0 if by.startswith("loss of ") else self.grace)
        elif word == "left" and self.is_hub:
            self.leave_out(link.name, unquote(rest))
        elif word == "run" and self.hosts and not self.is_hub:
            keep_order(self.jobs[0].folder, [unquote(each) for each in rest.split()])
        elif word == "without" and not self.is_hub:
            self.write("left", rest)
            if unquote(rest.partition(" ")[0]) == self.own:
                # It was silent for too long and is back: what it has would meet the others, who have begun anew.
                self.own_left = True
                self.left_by = "loss of " + self.own
        elif word == "ended" and self.is_hub:
            self.failed_there.add(link.name)
        elif word == "bye":
            self.gone[link.name if self.is_hub else self.hub] = "bye"
        self.last_heard[link.name if self.is_hub else self.hub] = time.monotonic()
        link.greeted = True

    def report(self, link):
        if self.by is not None:
            link.send("end " + quote(self.by))

    def broadcast(self, text):
        for link in list(self.links):
            if not self.is_hub or link.name is not None:
                link.send(text)

    # ---- what is done

    def end(self, by, grace):
        """From now on the jobs of the launch are to be ended, after a grace; the first reason counts."""
        if self.by is None:
            self.by = by
            self.end_at = time.monotonic() + grace
            self.broadcast("end " + quote(by))

    def leave_out(self, name, by):
        """The hub's: an elastic launch goes on without a server, as long as it has enough others."""
        self.left.add(name)
        self.broadcast("without %s %s" % (quote(name), quote(by)))
        self.write("left", "%s %s" % (quote(name), quote(by)))
        if len(self.others) + 1 - len(self.left) < self.needed:
            self.end(by, 0 if by.startswith("loss of ") else self.grace)

    def take_findings(self):
        for job, ended, failure in self.looker.take():
            if job.ended or not ended:
                continue
            job.ended = True
            self.close_fifo(job)
            if failure is None:
                continue
            job.failed = True
            self.broadcast("ended %d %s" % (job.rank, failure))
            by = "rank %d" % job.rank
            # An agent that a signal ended, or that is gone, has left; one that gives up has ended the launch. Without the
            # agent on the first server nobody finds the others any more.
            if self.needed and not self.is_hub and failure.split()[0] in ("signal", "gone"):
                self.broadcast("left " + quote(by))
                self.own_left = True
                self.left_by = by
            else:
                self.end(by, self.grace)
        if self.orders is not None and self.jobs_have_ended():
            self.broadcast("run")  # nothing more comes: who still waits, ends
            self.orders.tell_ends(self.others)
            self.unwatch(self.orders.fifo)
            os.close(self.orders.fifo)
            self.orders = None
        self.looked = self.looker.began

    def jobs_have_ended(self):
        return all(job.ended for job in self.jobs)

    def send_orders(self, now):
        if self.orders is None:
            return
        if self.orders.until:
            # who said bye to the process that stood here before this one, does not come again
            late = now - self.start > self.time_to_come
            silent = [name for name in self.others if late and name not in self.last_heard]
            self.orders.tell_ends(self.failed_there.union(self.gone, silent))
        if not self.orders.waiting:
            return
        there = {link.name: link for link in self.links if link.name is not None and link.open}
        gone = {name: "server %s is lost" % name for name in self.gone}
        if self.listener is None:
            gone.update((name, "this server cannot listen: " + self.refused) for name in self.others)
        elif now - self.start > self.time_to_come:
            for name in self.others:
                if name not in self.last_heard:
                    gone[name] = "server %s does not reach this one at %s port %d" % (name, self.address, self.port)
        self.orders.send(there, gone)

    def look_at_peers(self, now):
        for link in list(self.links):
            silent = now - link.heard
            unproved = link.name is None if self.is_hub else self.hub not in self.last_heard
            if (unproved and silent > PROOF_SECONDS) or (not self.is_hub and silent > self.timeout):
                self.drop(link)
        for name, heard in self.last_heard.items():
            if name not in self.gone and now - heard > self.timeout:
                self.gone[name] = "lost"
                if self.needed and self.is_hub:
                    self.leave_out(name, "loss of " + name)
                else:
                    self.end("loss of " + name, 0)
        if not self.is_hub and not self.links:
            if self.connecting is not None:
                if now - self.connecting_since >= CONNECT_SECONDS:
                    self.connect(now)
            elif now >= self.next_try:
                self.connect(now)

    def kill_jobs(self, now):
        """Ends what is left of this server's jobs, and what a failed one has left behind."""
        if self.killer is not None:
            try:
                if os.waitpid(self.killer, os.WNOHANG)[0] == 0:
                    return
            except ChildProcessError:
                pass  # nobody waits for children where SIGCHLD is ignored
            self.killer = None
            self.killed = now
            self.next_look = 0.0
        if self.looked < self.killed:
            return  # what it has ended, is not known yet
        if self.own_left and self.kills == 0:
            pass  # what the agent has left behind would train on
        elif self.by is None or now < self.end_at or self.kills >= 3:
            return
        ids = [job.id for job in self.jobs if not job.ended or (job.failed and self.kills == 0)]
        if not ids:
            self.kills = 3
            return
        self.kills += 1
        try:
            self.killer = os.fork()
        except OSError:
            return
        if self.killer == 0:
            try:
                os.setsid()  # the script leaves alone what is in its own session
                os.execvp("sh", ["sh", self.kill_script, "15", str(KILL_GRACE), quote(self.by or self.left_by)] + ids)
            finally:
                os._exit(127)

    def is_over(self, now):
        if self.killer is not None or self.looked < self.killed:
            return False
        if not all(job.ended for job in self.jobs):
            return self.kills >= 3
        if self.by is not None and self.kills < 3:
            return False
        if not self.is_hub:
            # a failure has to get through, and good bye too; to a hub that never was there it cannot
            if any(link.greeted for link in self.links) or self.hub in self.gone:
                return True
            return self.hub not in self.last_heard and now - self.start > self.time_to_come
        # The hub stays as long as others need it. Those that never came get their time to come.
        for name in self.others:
            if name in self.gone or (name not in self.last_heard and now - self.start > self.time_to_come):
                continue
            if self.listener is not None:
                return False
        return True

    def say_bye(self):
        self.broadcast("bye")
        limit = time.monotonic() + 2
        for link in self.links:
            while link.open and link.outgoing and time.monotonic() < limit:
                link.flush()
                time.sleep(0.02)
            link.sock.close()

    def run(self):
        if not self.enlist():
            return
        if self.is_hub and self.others:
            self.listen()
        for job in self.jobs:
            if job.fifo is not None:
                self.watch(job.fifo, job)
        if self.is_hub and self.hosts:
            try:
                self.orders = Orders(self.jobs[0].folder, self.hosts)
            except OSError:
                pass  # removed, or its disk is full: then its job says so, too
            else:
                self.watch(self.orders.fifo, self.orders)
                self.orders.look()
        self.watch(self.looker.ready, self.looker)
        while True:
            now = time.monotonic()
            self.look_at_peers(now)  # first: what they have said meanwhile has just been read
            if now >= self.next_look and not self.looker.busy:
                self.looker.begin([job for job in self.jobs if not job.ended])
                self.next_look = now + (0.5 if any(not job.ended and job.fifo is None for job in self.jobs) else 5)
            self.kill_jobs(now)
            self.send_orders(now)
            if self.deaf_until and now >= self.deaf_until:
                self.deaf_until = 0.0
                self.watch(self.listener.fileno(), self.listener)
            if now >= self.next_beat:
                self.next_beat = now + self.beat
                self.broadcast("beat")
            self.tell_how_it_is()
            if self.is_over(now):
                self.say_bye()
                self.leave()
                return
            for link in list(self.links):
                link.flush()
                if not link.open:
                    self.drop(link)
            busy = self.killer is not None or self.by is not None
            beginning = not self.is_hub and self.status is None and now - self.start < FIRST_SECONDS
            pause = 0.05 if busy or beginning else min(0.5, self.beat)
            asleep = time.monotonic()
            ready = [fd for fd, _ in self.poll.poll(int(pause * 1000))]
            self.forgive(time.monotonic() - asleep - pause)
            if self.connecting is not None and self.connecting.fileno() in ready:
                ready.remove(self.connecting.fileno())
                self.connect(time.monotonic())
            ready = [self.watched[fd] for fd in ready]
            for what in ready:
                if isinstance(what, Job):
                    self.drain(what)
                    self.next_look = 0.0
                elif what is self.looker:
                    self.take_findings()
                elif what in self.links:
                    self.serve(what)
                elif what is self.orders and what is not None:
                    what.look()
            if self.listener in ready:
                self.accept()  # last, so that nobody gives way who has just proved itself

    def forgive(self, late):
        """When this process was stopped, or its whole server, which makes its sleep too long: that is nobody's silence. How long it was
        busy does not count."""
        if late > 1:
            for name in self.last_heard:
                self.last_heard[name] += late
            for link in self.links:
                link.heard += late

    def drain(self, job):
        """Reads a supervisor's FIFO; at its end it is watched by looking only, as the job may live on."""
        try:
            if os.read(job.fifo, 512):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.close_fifo(job)

    def close_fifo(self, job):
        if job.fifo is not None:
            self.unwatch(job.fifo)
            os.close(job.fifo)
            job.fifo = None


def main():
    request = {}
    for line in sys.stdin:
        key, *values = line.split()
        request[key] = [unquote(value) for value in values]
    os.chdir("/")
    os.umask(0o077)
    if os.fork() != 0:
        os._exit(0)  # the shell that started this waits no longer
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, 256)
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a connection a server
    except (ImportError, ValueError, OSError):
        pass
    Lifeline(request, sys.argv[1], sys.argv[2]).run()


if __name__ == "__main__":
    main()
