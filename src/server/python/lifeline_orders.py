"""Orders that the lifelines of a launch carry for mpirun, and how words travel in their messages."""
import errno
import os
import stat

from lifeline_job import put

UNQUOTED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-")


def quote(text):
    """A text as one word: its odd bytes as %XX."""
    return "".join(chr(byte) if byte in UNQUOTED else "%%%02X" % byte for byte in text.encode())


def unquote(word):
    first, *others = word.encode().split(b"%")
    try:
        return (first + b"".join(bytes([int(part[:2], 16)]) + part[2:] for part in others)).decode(errors="replace")
    except ValueError:
        return word


class Orders:
    """mpirun's orders for other servers, on the hub: its agent puts each into a file of the first job's folder, and waits.

    A file order.NUMBER has a line with the host as mpirun calls it, and lines of the words of a command line for that
    host's shell. Only the name of mpirun's daemon and its arguments are sent on: no path, no variable, nothing for a shell.
    A file until.NUMBER has the line with the host alone: its agent waits on until the job there has ended.
    """

    DAEMONS = ("orted", "prted", "hydra_pmi_proxy")
    LIMIT = 32768

    def __init__(self, folder, names_by_host):
        self.folder = folder
        self.names_by_host = names_by_host
        self.waiting = []  # (number, server, message) whose server is not there yet
        self.until = {}  # by number: the server whose job's end is waited for
        self.sent = {}  # by server: the message, for one that comes again and may not have got it
        self.fifo = open_fifo(os.path.join(folder, "orders"))

    def look(self):
        """Takes in the orders that are there."""
        try:
            os.read(self.fifo, 4096)
        except OSError:
            pass
        try:
            names = os.listdir(self.folder)
        except OSError:
            return
        for name in names:
            word, _, number = name.partition(".")
            if word in ("order", "until") and number.isdigit():
                self.take(word, number)

    def take(self, kind, number):
        if number in self.until or any(number == order[0] for order in self.waiting):
            return
        path = os.path.join(self.folder, kind + "." + number)
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                data = file.read(self.LIMIT + 1)
        except OSError:
            return
        host, _, line = data.decode(errors="replace").partition("\n")
        name = self.names_by_host.get(host)
        words = self.words_of(line.replace("\n", " "))
        if name is None:
            self.answer(kind, number, "it is no server of this launch")
        elif kind == "until":
            self.until[number] = name
        elif words is None or len(data) > self.LIMIT:
            self.answer(kind, number, "its command line is not understood")
        else:
            self.waiting.append((number, name, "run " + " ".join(quote(word) for word in words)))

    def words_of(self, line):
        import shlex  # not at the start: it takes as long to import as all the rest

        try:
            words = shlex.split(line)
        except ValueError:
            return None
        for place, word in enumerate(words):
            # before it there may be assignments: "PATH=/opt/x/bin:$PATH;export PATH;/opt/x/bin/orted"
            daemon = word.rpartition(";")[2].rpartition("/")[2]
            if daemon in self.DAEMONS:
                return [daemon] + words[place + 1 :]
        return None

    def answer(self, kind, number, text):
        # Until now it is there for the one that takes over when this process dies.
        try:
            os.unlink(os.path.join(self.folder, kind + "." + number))
        except OSError:
            pass
        poke(os.path.join(self.folder, "answer." + number), text)

    def send(self, links, gone):
        """Sends what can be sent: `links` by server; to those that are `gone` nothing will."""
        for order in list(self.waiting):
            number, name, message = order
            if name in links:
                links[name].send(message)
                self.sent[name] = message
                self.answer("order", number, "ok")
            elif name in gone:
                self.answer("order", number, gone[name])
            else:
                continue
            self.waiting.remove(order)

    def forget(self):
        """The mpirun that gave them is gone, and another one begins (forget_attempt())."""
        self.waiting, self.until, self.sent = [], {}, {}

    def tell_ends(self, ended):
        """Ends the waiting for the jobs on these servers."""
        for number, name in list(self.until.items()):
            if name in ended:
                del self.until[number]
                self.answer("until", number, "ended")


def forget_attempt(folder):
    """Removes what the mpirun of an attempt that has ended left in its job's folder, and its ranks. Raises OSError."""
    for name in os.listdir(folder):
        if name == "order" or name.startswith(("order.", "until.", "answer.", "open.rank.", "raised.rank.")):
            os.unlink(os.path.join(folder, name))
    ranks = os.path.join(folder, "ranks")
    for name in os.listdir(ranks) if os.path.isdir(ranks) else ():
        if name.startswith("."):  # the FIFOs of their labels
            os.unlink(os.path.join(ranks, name))


def open_fifo(path):
    """Opens a FIFO, which is made where there is none, for both directions: it never ends."""
    try:
        os.mkfifo(path, 0o600)
    except OSError:
        pass
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "no FIFO")
    return fd


def poke(path, text):
    """Writes a line into a FIFO that somebody reads; nothing happens where nobody does."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.write(fd, text.encode() + b"\n")
    except OSError:
        pass
    finally:
        os.close(fd)


def keep_order(folder, words):
    """On another server: puts the order where its job waits for it (mpi_member.sh). The first one counts; none ends the waiting."""
    if os.path.lexists(os.path.join(folder, "order")) or any("\n" in word for word in words):
        return
    if words and words[0] not in Orders.DAEMONS:
        return
    try:
        put(folder, "order", "".join(word + "\n" for word in words))
    except OSError:
        return
    poke(os.path.join(folder, "orders"), "")
