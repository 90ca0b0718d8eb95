"""A connection between two lifelines.

A message is a line "TEXT MAC"; the MAC's key is made of the launch's token, which is never sent, and of a random number of either side, and
the MAC covers direction and number of the message, so that no line of a stranger and no old line is believed. docs/protocol.md tells
the messages.
"""
import _socket as socket
import os
from _operator import _compare_digest as compare_digest

try:
    from _sha2 import sha256  # since Python 3.12
except ImportError:
    try:
        from _sha256 import sha256
    except ImportError:  # a Python that was built without it
        from hashlib import sha256

from lifeline_job import clock

LINE_LIMIT = 4096
ORDER_LIMIT = 131072  # of a line from the hub that has proved itself
INNER, OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))


def hmac(key, text):
    """HMAC-SHA256 (RFC 2104)."""
    block = (sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    return sha256(block.translate(OUTER) + sha256(block.translate(INNER) + text.encode()).digest())


def addresses(address, port):
    """As socket.getaddrinfo, which would import a lot for a name that is ASCII."""
    host = address.encode("ascii" if all(c < "\x80" for c in address) else "idna")
    return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)


def any_address(family):
    return "::" if family == socket.AF_INET6 else "0.0.0.0"


def listening(ways, port):
    """A socket at the first of these addresses() that can be had. Raises OSError."""
    for family, _, _, _, where in ways:
        for place in (where, (any_address(family), port)):  # an address that is translated on the way is not this server's own
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(place)
                sock.listen(128)
            except OSError as error:
                refusal = error
                sock.close()
                continue
            sock.setblocking(False)
            return sock
    raise refusal


def free_port(family=socket.AF_INET):
    """One that nobody listens at now."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.bind((any_address(family), 0))
        return sock.getsockname()[1]
    finally:
        sock.close()


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
        self.heard = clock()
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
        self.heard = clock()
        return text

    def close(self):
        # The descriptor itself goes with Lifeline.drop, after the poll object has let go of its number.
        self.open = False
