"""Who takes part in the attempts of a launch that may begin anew (lifeline_again.py), as its first server knows it: members, spares that take
the place of one, and members that are left out as sick."""
from lifeline_orders import unquote

# What a failure is marked by where the machine is to blame, and the last words that say so (lifeline_acts.py).
SICK = (
    ("gpu", (b"fallen off the bus", b"GPU is lost", b"Unable to determine the device handle", b"no CUDA-capable device is detected")),
    ("ecc", (b"uncorrectable ECC", b"ECC error")),
    ("xid", (b"NVRM: Xid",)),
    ("disk", (b"No space left on device", b"Input/output error", b"Stale file handle")),
)
TWICE = 2


class Members:
    def __init__(self, request):
        names = list(request["servers"])
        self.counts = dict(zip(names, (int(count) for count in request["counts"])))
        idle = int(request.get("spares", ["0"])[0])
        self.names = names[: len(names) - idle]  # of this attempt, in the order of their ranks
        self.spares = names[len(names) - idle :]  # that have not been members yet
        self.heard = {}  # by spare: when it asked last
        self.troubles = {}  # (server, mark): in how many attempts it failed so
        self.sick = {}  # by server: the mark of its failures

    def shape_of(self, name):
        """WORLD_SIZE, and of a member its first RANK, its NODE_RANK, and how many nodes there are."""
        node = self.names.index(name)
        first = sum(self.counts[other] for other in self.names[:node])
        return sum(self.counts[other] for other in self.names), first, node, len(self.names)

    def blame(self, why):
        """Takes in a failure, as AgainPolicy.fail(). Whether its server is sick by now; the first server never is, as it cannot be left out."""
        words = why.split(":")
        if len(words) < 5 or words[3] not in dict(SICK):
            return False
        server, mark = unquote(words[4]), words[3]
        count = self.troubles[server, mark] = self.troubles.get((server, mark), 0) + 1
        if count < TWICE or server == self.names[0]:
            return False
        self.sick[server] = mark
        return True

    def without(self, silent, now, patience):
        """The members of the next attempt: without the silent and the sick ones. A spare that has asked within `patience` takes the place of
        one, which keeps the ranks of all others as they were."""
        ready = [name for name in self.spares if now - self.heard.get(name, now - patience - 1) <= patience]
        names = []
        for name in self.names:
            if name not in silent and name not in self.sick:
                names.append(name)
            elif ready:
                names.append(ready.pop(0))
        return names

    def become(self, names):
        self.names = names
        self.spares = [name for name in self.spares if name not in names]
