"""How fast the network is: a part of pairs.py, which stands before it, for `remote check --bandwidth`.

A server is told when to send, and to whom, so that the servers measure in rounds. iperf3 sends where both servers have
it, else this program.
"""
import json
import subprocess

PINGS = 20
CHUNK = 1 << 20
SEND_SPARE = 10  # seconds that a measurement may take longer than it sends
MOST_BITS = 1e15  # a second: more than any network carries


def die_with_parent():
    """For a child: it ends when this process does, however that happens (prctl(2), PR_SET_PDEATHSIG)."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9)
    except (ImportError, OSError, AttributeError):
        pass


def start_child(words):
    child = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent
    )
    os.set_blocking(child.stdout.fileno(), False)
    CHILDREN.append(child)
    return child


def end_child(child):
    child.kill()
    child.wait()
    child.stdout.close()
    CHILDREN.remove(child)


# ---- what a listener does -------------------------------------------------------------------------------


def answer_pings(sock, data):
    for _ in range(PINGS):
        if not (yield from send_all(sock, b"pong\n")):
            return
        if not (yield from receive(sock, lambda data: b"\n" in data, TALK_SECONDS)):
            return


def take_all(sock, _):
    """Reads until the other side has sent all, and tells how much it was and how long it took, in microseconds."""
    buffer = memoryview(bytearray(CHUNK))
    begun = last = time.monotonic()
    count = 0
    while True:
        try:
            size = sock.recv_into(buffer)
        except BlockingIOError:
            if not (yield sock, select.POLLIN, SEND_SPARE):
                return
            continue
        except OSError:
            return
        last = time.monotonic()
        if not size:
            break
        if not count:
            begun = last
        count += size
    yield from send_all(sock, b"%d %d\n" % (count, max(1, int((last - begun) * 1e6))))


TALKS[b"ping"] = answer_pings
TALKS[b"take"] = take_all

# ---- orders ---------------------------------------------------------------------------------------------


def start_iperf(server, _):
    """Begins to serve iperf3, which serves one client after the other, and tells its port; 0 where it is not there."""

    def begin():
        for _ in range(5):
            sock = listener(0)
            if not sock:
                break
            port = sock.getsockname()[1]
            sock.close()
            try:
                child = start_child(["iperf3", "-s", "-p", str(port), "--forceflush"])
            except OSError:
                break
            data = yield from receive(child.stdout, lambda data: b"listening" in data, 5)
            if b"listening" in data:
                server.loop.watch(child.stdout.fileno(), lambda: drain(server.loop, child))
                say("iperf3", port)
                return
            end_child(child)
        say("iperf3", 0)

    server.loop.later(begin(), lambda error: say("iperf3", 0))


def drain(loop, child):
    try:
        if os.read(child.stdout.fileno(), 65536):
            return
    except BlockingIOError:
        return
    except OSError:
        pass
    loop.forget(child.stdout.fileno())


def meet(token, address, port, word):
    """A connection to that listener, which has been asked for this; None where there is none."""
    sock = socket.socket(packed(address)[0], socket.SOCK_STREAM)
    if (yield from connect(sock, address, port)) is None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = yield from receive(sock, lambda data: b"\n" in data or len(data) > 200, TALK_SECONDS)
        if hello.split()[1:2] == [token.encode()] and (yield from send_all(sock, word)):
            return sock
    sock.close()
    return None


def latency(token, address, port):
    """The median of some round trips, in microseconds; 0: not known."""
    sock = yield from meet(token, address, port, b"ping \n")
    if not sock:
        return 0
    times = []
    with sock:
        yield from receive(sock, lambda data: b"\n" in data, TALK_SECONDS)
        for _ in range(PINGS - 1):
            begun = time.perf_counter()
            yield from send_all(sock, b"ping\n")
            if not (yield from receive(sock, lambda data: b"\n" in data, TALK_SECONDS)):
                break
            times.append(time.perf_counter() - begun)
    return int(sorted(times)[len(times) // 2] * 1e6) if times else 0


def send_iperf(address, port, seconds):
    """Bits a second, or why not."""
    for _ in range(3):
        try:
            child = start_child(
                ["iperf3", "-c", address, "-p", str(port), "-t", str(seconds), "-J", "--connect-timeout", "3000"]
            )
        except OSError:
            return "iperf3 cannot be started"
        data = yield from receive(child.stdout, lambda data: False, seconds + SEND_SPARE)
        end_child(child)
        try:
            answer = json.loads(data.decode("utf-8", "replace"))
            if "error" not in answer:
                bits = float(answer["end"]["sum_received"]["bits_per_second"])
                if 0 <= bits <= MOST_BITS:  # not so for what is no number
                    return bits
                raise ValueError
            why = str(answer["error"])
        except (ValueError, KeyError, TypeError):
            why = "its answer is not understood"
        if "busy" not in why:
            break
        yield child_pause(), select.POLLIN, 0.3
    return "iperf3: " + why


def child_pause():
    """Something to wait for that never comes."""
    PAUSES.append(socket.socketpair())
    return PAUSES[-1][0]


PAUSES = []


def send_own(token, address, port, seconds):
    sock = yield from meet(token, address, port, b"take \n")
    if not sock:
        return "the connection fails"
    chunk = memoryview(bytes(CHUNK))
    count = 0
    with sock:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                count += sock.send(chunk)
            except BlockingIOError:
                if not (yield sock, select.POLLOUT, SEND_SPARE):
                    return "the connection stands still"
            except OSError as error:
                return os.strerror(error.errno or errno.EIO)
        sock.shutdown(socket.SHUT_WR)
        words = (yield from receive(sock, lambda data: b"\n" in data, SEND_SPARE)).split()
    if not words:
        return "the other side does not answer"
    # The other server may say anything.
    if len(words) != 2 or not all(word.isdigit() and len(word) < 19 for word in words) or int(words[1]) == 0:
        return "the other side answers something else"
    if int(words[0]) > count:
        return "the other side says that it got more than was sent"
    return min(int(words[0]) * 8e6 / int(words[1]), MOST_BITS)


def send(server, words):
    """send INDEX ADDRESS IPERF-PORT SECONDS WITH-LATENCY"""
    index, address, iperf, seconds, pings = int(words[0]), words[1], int(words[2]), int(words[3]), words[4] == "1"
    peer = next(peer for peer in server.peers if peer.index == index)

    def work():
        took = (yield from latency(peer.token, address, peer.ports[0])) if pings else 0
        if iperf:
            result = yield from send_iperf(address, iperf, seconds)
        else:
            result = yield from send_own(peer.token, address, peer.ports[0], seconds)
        if isinstance(result, str):
            say("sent", index, "error", *(plain(word) for word in result.split()[:20]))
        else:
            say("sent", index, int(result), took, "iperf3" if iperf else "own")

    def failed(error):
        words = (getattr(error, "strerror", None) or type(error).__name__).split()
        say("sent", index, "error", *(plain(word) for word in words[:20]))

    server.loop.later(work(), failed)


ORDERS["iperf3"] = start_iperf
ORDERS["send"] = send
