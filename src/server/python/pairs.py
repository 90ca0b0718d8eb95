"""The network part of `remote check` on one server: it listens, and it tries to reach the listeners of the others.

pairs.sh starts it, with pairs_loop.py, pairs_ways.py and, where it is wanted, pairs_bandwidth.py behind it.
src/servers/pairs.cpp speaks with it by lines (docs/protocol.md). It ends when stdin does, so nothing stays behind a
client that is gone. Python 3.6 or later, standard library only.

argv: this server's number, the token by which its listeners prove whose they are, and the name or address of the first
server, to which the ranks of a launch would connect, and a port that all servers try to take, so that one which has the
address of another is found out.
"""
import errno
import os
import random
import select
import socket
import struct
import sys
import time

CONNECT_SECONDS = 3.5  # SYNs go out after 0, 1 and 3 seconds; a neighbour that does not answer is given up after 3
TALK_SECONDS = 2
RESOLVE_SECONDS = 5
IDLE_SECONDS = 600
AT_ONCE = 64
BLOCK_LIMIT = 32000
SIZES = (8950, 8900, 4000, 2000, 1480, 1460, 1450, 1440, 1430, 1420, 1400, 1380, 1350, 1300, 1280, 1200, 1000, 800, 576)
IP_RECVERR, IPV6_RECVERR = 11, 25  # linux/in.h and linux/in6.h
MSG_ERRQUEUE = 0x2000
OWN, TOKEN, MASTER, PORT = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])


def say(*words):
    os.write(1, ("@remote1 pairs " + " ".join(str(word) for word in words) + "\n").encode())


def plain(text):
    """A text as one word that the other side accepts."""
    return "".join(c if c.isalnum() and c < "\x80" or c in "._-" else "_" for c in text)[:200] or "-"


def refuse(why):
    """Ends this server's part, and says why: nobody is to wait for it."""
    text = "".join(c if " " <= c < "\x7f" else "?" for c in str(why)[:400])
    os.write(1, ("@remote1 error %s\n" % text).encode())
    leave()


def read_number(path):
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


# ---- listening -------------------------------------------------------------------------------------------


def listener(port):
    for family, host in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue
        try:
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            sock.bind((host, port))
            sock.listen(512)
            sock.setblocking(False)
            return sock
        except OSError:
            sock.close()
    return None


def launch_listener():
    """On a port as a launch chooses one (lib/network.sh)."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            low, high = (int(word) for word in file.read().split())
    except (OSError, ValueError):
        low = high = 0
    ports = [port for port in range(20000, 32768) if not low <= port <= high] or list(range(20000, 32768))
    for port in [PORT] + random.sample(ports, 50):
        sock = listener(port)
        if sock:
            return sock
    return None


def send_all(sock, data):
    while data:
        try:
            data = data[sock.send(data) :]
        except BlockingIOError:
            if not (yield sock, select.POLLOUT, TALK_SECONDS):
                return False
        except OSError:
            return False
    return True


def receive(source, enough, seconds):
    """What has come from a socket or a pipe when enough(data) is true, or when nothing more comes."""
    data = b""
    end = time.monotonic() + seconds
    while not enough(data):
        if not (yield source, select.POLLIN, end - time.monotonic()):
            break
        try:
            piece = os.read(source.fileno(), 65536)
        except BlockingIOError:
            continue
        except OSError:
            break
        if not piece:
            break
        data += piece
    return data


def block_size(data):
    """How long a block is to be, by its first line; None where that is not one."""
    words = data.partition(b"\n")[0].split()
    if b"\n" in data and len(words) == 2 and words[0] == b"block" and words[1].isdigit() and len(words[1]) < 10:
        return min(int(words[1]), BLOCK_LIMIT)
    return None


def return_block(sock, data):
    size = block_size(data)
    if size is None:
        return
    data += yield from receive(sock, lambda more: len(data) + len(more) >= size, CONNECT_SECONDS + 2 * TALK_SECONDS)
    if len(data) < size:
        return
    if (yield from send_all(sock, b"got\n")) and (yield from send_all(sock, b"." * size)):
        yield from receive(sock, lambda data: False, TALK_SECONDS)


TALKS = {b"block": return_block}  # what a listener does with one who came, by the first word that comes


def serve(sock, peer):
    """One who came: tells whose listener this is, and does what is asked."""
    with sock:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seen = peer[0].partition("%")[0]
        if seen.startswith("::ffff:"):
            seen = seen[7:]
        if not (yield from send_all(sock, ("remote1 %s %s\n" % (TOKEN, seen)).encode())):
            return
        seconds = CONNECT_SECONDS + 2 * TALK_SECONDS
        data = yield from receive(sock, lambda data: b"\n" in data or len(data) > BLOCK_LIMIT, seconds)
        talk = TALKS.get(data.partition(b" ")[0])
        if talk:
            yield from talk(sock, data)


# ---- trying ----------------------------------------------------------------------------------------------


def refusal(sock, code):
    """Why a connection failed: the kernel's word, and who said it, where that came by ICMP (ip(7), IP_RECVERR)."""
    words = [errno.errorcode.get(code, "E%d" % code)]
    try:
        for level, kind, value in sock.recvmsg(1, 512, MSG_ERRQUEUE)[1]:
            if kind in (IP_RECVERR, IPV6_RECVERR) and len(value) >= 20 and value[4] in (2, 3):
                family = socket.AF_INET if value[4] == 2 else socket.AF_INET6
                at, size = (20, 4) if family == socket.AF_INET else (24, 16)
                words += ["icmp", value[5], value[6], socket.inet_ntop(family, value[16 + at - 16 :][:size])]
                break
    except (OSError, ValueError):
        pass
    return words


def connect(sock, address, port):
    """The words of a failure; None when the connection stands."""
    sock.setblocking(False)
    v6 = sock.family == socket.AF_INET6
    sock.setsockopt(socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP, IPV6_RECVERR if v6 else IP_RECVERR, 1)
    try:
        code = sock.connect_ex((address, port))
    except OSError as error:
        code = error.errno or errno.EINVAL
    if code == errno.EINPROGRESS:
        if not (yield sock, select.POLLOUT, CONNECT_SECONDS):
            return ["dropped"]
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code == errno.ETIMEDOUT:
        return ["dropped"]
    return ["error"] + refusal(sock, code) if code else None


def attempt(tokens, expected, address, port, size_limit, done):
    """One try to talk with a listener; done(words) gets how it went."""
    family = packed(address)[0]
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        done(["error", errno.errorcode.get(error.errno, "EINVAL")])
        return
    with sock:
        if size_limit:
            headers = 40 if family == socket.AF_INET else 60
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, size_limit - headers)
        begun = time.monotonic()
        failure = yield from connect(sock, address, port)
        if failure:
            done(failure)
            return
        took = int((time.monotonic() - begun) * 1e6)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = yield from receive(sock, lambda data: b"\n" in data or len(data) > 200, TALK_SECONDS)
        words = hello.decode("ascii", "replace").split()
        if len(words) != 3 or words[0] != "remote1" or words[1] not in tokens:
            done(["stranger"] if hello else ["silent"])
            return
        if tokens[words[1]] != expected:
            done(["other", tokens[words[1]]])
            return
        # One segment that is as large as the way allows at most, and one back.
        segment = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        size = max(64, min(segment, BLOCK_LIMIT))
        yield from send_all(sock, (b"block %d\n" % size).ljust(size, b"."))
        answer = yield from receive(sock, lambda data: len(data) >= size + 4, TALK_SECONDS)
        packet = segment + (40 if family == socket.AF_INET else 60) + 12  # with timestamps, as Linux sends them
        if len(answer) >= size + 4:
            seen = words[2] if packed(words[2]) else "-"
            done(["ok", took, seen, packet])
        else:
            done(["lost", "back" if answer else "out", packet])


class Peer:
    """Another server, and how the tries to reach it went."""

    def __init__(self, index, token, ports, name, data, others):
        self.index = index
        self.token = token
        self.ports = ports
        self.name = name
        self.data = data  # its address on the interface that ranks would use; "-": not known
        self.others = others
        self.open = 0
        self.good = False
        self.lost = []  # the tries that packets of full size did not survive
        self.passed = [0]  # smaller sizes that did

    def tries(self, loop, tokens, addresses):
        """The tries that come first: all addresses that ranks would use, and the second port."""
        self.addresses = addresses[:4]
        used = list(self.addresses)
        if self.data not in used + ["-", "::1"] and not self.data.startswith("127."):
            used.append(self.data)
        first = [(address, self.ports[0]) for address in used]
        first += [(self.addresses[0], self.ports[1])] if self.addresses else []
        self.start(loop, tokens, first)
        if not first:
            self.next(loop, tokens)

    def start(self, loop, tokens, targets):
        self.open += len(targets)
        for address, port in targets:
            done = self.result(loop, tokens, address, port)
            loop.later(attempt(tokens, self.index, address, port, 0, done), self.failed(done))

    @staticmethod
    def failed(done):
        """What a try says that the kernel has broken off."""
        return lambda error: done(["error", errno.errorcode.get(getattr(error, "errno", None), "EIO")])

    def result(self, loop, tokens, address, port):
        def done(words):
            self.open -= 1
            if words[0] == "lost":
                self.lost.append([address, port] + words)
                if len(self.lost) == 1:
                    self.measure(loop, tokens)
            else:
                self.good = self.good or words[0] == "ok"
                say("try", self.index, address, port, *words)
            self.next(loop, tokens)

        return done

    def next(self, loop, tokens):
        """When nothing is under way: the other addresses, where none of the name's leads there."""
        if self.open:
            return
        for words in self.lost:
            say("try", self.index, *(words + [max(self.passed)]))
        self.lost = []
        others = [address for address in self.others if address not in self.addresses + [self.data]][:4]
        self.others = []
        if others and not self.good:
            self.start(loop, tokens, [(address, self.ports[0]) for address in others])

    def measure(self, loop, tokens):
        """Which packets do pass, where the largest do not."""
        address, port, _, _, packet = self.lost[0]

        def take(size):
            def done(result):
                self.open -= 1
                if result[0] == "ok":
                    self.passed.append(size)
                self.next(loop, tokens)

            return done

        sizes = [size for size in SIZES if size < packet]
        self.open += len(sizes)
        for size in sizes:
            done = take(size)
            loop.later(attempt(tokens, self.index, address, port, size, done), self.failed(done))


ORDERS = {}  # more that can be ordered, by their first words: pairs_bandwidth.py
CHILDREN = []  # processes that this one has started


def leave():
    for child in CHILDREN:
        child.kill()
    os._exit(0)


class Server:
    def __init__(self):
        self.loop = Loop()
        self.input = b""
        self.peers = []
        self.trying = False
        self.told = 0  # when it last gave a sign of life
        self.interfaces = {}
        self.end = time.monotonic() + IDLE_SECONDS  # nobody asks for so long: nobody is there

    def listen(self):
        sockets = [launch_listener(), listener(0)]
        if None in sockets:
            say("nolisten")
            return False
        for sock in sockets:
            self.loop.watch(sock.fileno(), lambda sock=sock: self.accept(sock))
        try:
            self.interfaces = own_addresses()
        except OSError:
            pass
        name = socket.gethostname()
        for interface, addresses in sorted(self.interfaces.items())[:64]:
            if addresses and plain(interface) == interface:
                folder = "/sys/class/net/%s/" % interface
                speed = max(0, read_number(folder + "speed"))
                say("interface", interface, max(0, read_number(folder + "mtu")), speed, *addresses[:16])
        names = resolve([name, MASTER])
        say("host", plain(name), *names[name])
        interface, source = way_to(names[MASTER][0], self.interfaces) if names[MASTER] else (None, None)
        say("data", plain(interface or "-"), source or "-")
        say("listening", *(sock.getsockname()[1] for sock in sockets))
        return True

    def accept(self, sock):
        try:
            for _ in range(64):
                connection, peer = sock.accept()
                if len(self.loop.waiting) > 2000:
                    connection.close()
                else:
                    self.loop.step(serve(connection, peer), None)
        except OSError:
            pass

    def read(self):
        data = os.read(0, 65536)
        if not data:
            leave()
        self.end = time.monotonic() + IDLE_SECONDS
        self.input += data
        *lines, self.input = self.input.split(b"\n")
        for line in lines:
            words = line.decode("ascii", "replace").split()
            try:
                self.order(words)
            except (ValueError, IndexError, StopIteration):
                refuse("an order is not understood: " + " ".join(words))

    def order(self, words):
        if words[0] == "peer":
            index, port, second = (int(words[n]) for n in (1, 3, 4))
            self.peers.append(Peer(index, words[2], (port, second), words[5], words[6], words[7:]))
        elif words[0] == "try":
            self.begin()
        elif words[0] == "stop":
            os.write(1, b"@remote1 end\n")
            leave()
        elif words[0] in ORDERS:
            ORDERS[words[0]](self, words[1:])
        else:
            raise ValueError

    def begin(self):
        addresses = resolve([peer.name for peer in self.peers])
        tokens = {peer.token: peer.index for peer in self.peers}
        for peer in self.peers:
            found = addresses[peer.name]
            interface, source = way_to(found[0], self.interfaces) if found else (None, None)
            say("way", peer.index, plain(interface or "-"), source or "-", *found)
            if peer.index != OWN:
                peer.tries(self.loop, tokens, found)
        self.trying = True

    def run(self):
        try:
            self.work()
        except Exception as error:
            refuse("%s: %s" % (type(error).__name__, error))

    def work(self):
        if not self.listen():
            os.write(1, b"@remote1 end\n")
            return
        self.loop.watch(0, self.read)
        while time.monotonic() < self.end:
            self.loop.turn(1)
            if self.trying and time.monotonic() > self.told + 2:
                self.told = time.monotonic()
                os.write(1, b"\n")  # a sign of life: who says nothing for long counts as stopped
            if self.trying and self.loop.idle():
                self.trying = False
                say("tried")
        leave()
