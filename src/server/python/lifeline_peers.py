"""The connections between the processes of a launch, or of a sweep: the one on the first server, the hub, listens, and the others connect to it.
Nothing here waits, except for the resolution of a name. A subclass knows what the messages mean."""
import _socket as socket
import errno
import os
import select
import time

from lifeline_job import clock
from lifeline_link import Link, addresses, listening

STRANGERS = 256  # connections that have not proved anything yet
CONNECT_SECONDS = 2


class Peers:
    def __init__(self, token, address, port, is_hub):
        self.token, self.address, self.port, self.is_hub = token, address, port, is_hub
        self.links = []  # the hub's: one a member and strangers; a member's: the one to the hub
        self.poll = select.poll()
        self.watched = {}  # by descriptor: a link, the listener, or what else a subclass watches
        self.listener = None
        self.deaf_until = 0.0  # accepts nobody until then: no file can be opened
        self.ways = []  # a member's: addresses of the hub that are still to be tried, and since when one is
        self.connecting = None
        self.connecting_since = 0.0
        self.next_try = 0.0
        self.refused = ""

    def watch(self, fd, what):
        self.watched[fd] = what
        self.poll.register(fd, select.POLLIN)

    def unwatch(self, fd):
        del self.watched[fd]
        self.poll.unregister(fd)

    def listen(self):
        ways = addresses(self.address, self.port)
        try:
            self.listener = listening(ways, self.port)
        except OSError as error:
            self.refused = error.strerror or str(error)
            return
        self.watch(self.listener.fileno(), self.listener)

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
                self.deaf_until = clock() + 1
                return
            sock = socket.socket(self.listener.family, socket.SOCK_STREAM, 0, fd)
            if len(strangers) >= STRANGERS:
                self.drop(strangers[0])  # a member proves itself within a round trip: who waits longest, is none
            try:
                self.add(Link(sock, self.token, True))
            except OSError:
                sock.close()

    def pause_between_tries(self, now):
        """Seconds from one try to connect to the next."""
        raise NotImplementedError

    def keep_connecting(self, now):
        """A member's, all the time."""
        if self.links:
            return
        if self.connecting is not None:
            if now - self.connecting_since >= CONNECT_SECONDS:
                self.connect(now)
        elif now >= self.next_try:
            self.connect(now)

    def connect(self, now):
        """Begins to connect to the hub, or looks how that stands."""
        if self.connecting is None:
            self.next_try = now + self.pause_between_tries(now)
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

    def drop(self, link):
        if link not in self.links:
            return
        self.links.remove(link)
        self.unwatch(link.sock.fileno())
        link.close()
        link.sock.close()
        self.note_drop()

    def note_drop(self):
        """A connection is gone."""

    def take_in(self, link, name):
        """The hub's: this server has proved itself, perhaps once more."""
        for old in [other for other in self.links if other.name == name and other is not link]:
            self.drop(old)
        link.name = name

    def broadcast(self, text):
        for link in list(self.links):
            if not self.is_hub or link.name is not None:
                link.send(text)

    def flush(self):
        for link in list(self.links):
            link.flush()
            if not link.open:
                self.drop(link)

    def say_last(self, text):
        self.broadcast(text)
        limit = clock() + 2
        for link in self.links:
            while link.open and link.outgoing and clock() < limit:
                link.flush()
                time.sleep(0.02)
            link.sock.close()

    def await_any(self, seconds):
        """What is watched and ready, the listener last, so that nobody gives way to a stranger who has just proved itself."""
        if self.deaf_until and clock() >= self.deaf_until:
            self.deaf_until = 0.0
            self.watch(self.listener.fileno(), self.listener)
        ready = [fd for fd, _ in self.poll.poll(int(seconds * 1000))]
        if self.connecting is not None and self.connecting.fileno() in ready:
            ready.remove(self.connecting.fileno())
            self.connect(clock())
        return sorted((self.watched[fd] for fd in ready), key=lambda what: what is self.listener)
