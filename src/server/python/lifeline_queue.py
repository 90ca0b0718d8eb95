"""A launch that waits for its leases on several servers: what its lifelines do while it is in line (docs/sharing.md).

The first server's lifeline leads. It lets the servers take what they need one after the other, in the order of their machines' ids, which is the
same for all launches: so no two can each have what the other waits for. When all have it, the ranks begin on all. What is not complete within a
minute is given back everywhere, and tried again.

On each server lease_wait.py waits, beside this process: it reads `turn.order` and writes `turn.state` in the folder of the launch's first job there.
"""
import os
import random

from lifeline_job import put
from lifeline_link import free_port, sha256

COMPLETE_SECONDS = 60.0  # from the first lease to the last
REPEAT_SECONDS = 2.0


def machine_id():
    """The same for all users and projects, and after a restart of the machine; the id itself is told to nobody."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/hostname"):
        try:
            with open(path, "rb") as file:
                text = file.read().strip()
        except OSError:
            continue
        if text:
            return sha256(b"remote lease " + text).hexdigest()[:16]
    return "0"


class Turns:
    """What the first server's lifeline decides. It opens nothing, and is told the time. `port()` is a free one."""

    def __init__(self, names, port, seconds=COMPLETE_SECONDS, pause=random.uniform):
        self.names = list(names)
        self.port = port
        self.seconds = seconds
        self.pause = pause
        self.machines = {}
        self.states = {}
        self.orders = {name: "keep" for name in names}
        self.since = None  # when the first of this try had its lease
        self.resume_at = 0.0
        self.giving_back = False

    def hear(self, name, machine, state):
        self.machines[name] = machine
        self.states[name] = state

    def decide(self, now):
        """The order for each server: `keep`, `take`, or `go PORT`."""
        if len(self.states) < len(self.names):
            return self.orders
        gone = [state.split()[1] for state in self.states.values() if state.startswith("gone ")]
        if gone or self.orders[self.names[0]].startswith("go "):
            port = gone[0] if gone else self.orders[self.names[0]].split()[1]
            self.orders = {name: "go " + port for name in self.names}
            return self.orders
        has = [name for name in self.names if self.states[name] == "held"]
        if self.giving_back:
            if has or now < self.resume_at:
                return self.orders
            self.giving_back = False
        if has and self.since is None:
            self.since = now
        if len(has) == len(self.names):
            port = self.port()
            self.orders = {name: "go %d" % port for name in self.names}
        elif self.since is not None and now - self.since > self.seconds:
            self.since = None
            self.giving_back = True
            self.resume_at = now + self.pause(0.5, 5.0)
            self.orders = {name: "keep" for name in self.names}
        else:
            order = sorted(self.names, key=lambda name: (self.machines[name], name))
            missing = [name for name in order if name not in has]
            self.orders = {name: "take" if name in has or name == missing[0] else "keep" for name in self.names}
        return self.orders


class Queue:
    """The part of a lifeline process: it brings orders and states between the servers, and between itself and lease_wait.py."""

    def __init__(self, lifeline, request):
        self.lifeline = lifeline
        self.policy = lifeline.policy
        self.folder = lifeline.jobs[0].folder
        self.machine = machine_id()
        seconds = float(request["queue"][0])
        self.turns = Turns(request["servers"], free_port, seconds) if self.policy.is_hub else None
        self.order = None
        self.sent = {}  # to others: what, and when
        self.over = False

    def state(self):
        try:
            with open(os.path.join(self.folder, "turn.state")) as file:
                return " ".join(file.read().split()[:2])
        except OSError:
            return ""

    def obey(self, order):
        if order != self.order:
            try:
                put(self.folder, "turn.order", order + "\n")
            except OSError:
                return
            self.order = order

    def send(self, name, text, now):
        if self.sent.get(name, ("", 0.0))[0] == text and now < self.sent[name][1] + REPEAT_SECONDS:
            return
        self.sent[name] = text, now
        for link in self.lifeline.links:
            if link.name == name or not self.policy.is_hub:
                link.send("turn " + text)

    def tick(self, now):
        if self.over:
            return
        state = self.state()
        if not self.policy.is_hub:
            if state:
                self.send(self.policy.hub, "%s %s" % (self.machine, state), now)
            # whoever begins anew may have to be told once more
            self.over = state.startswith("gone") and self.policy.hub in self.policy.gone
            return
        if state:
            self.turns.hear(self.policy.own, self.machine, state)
        orders = self.turns.decide(now)
        for name, order in orders.items():
            if name == self.policy.own:
                self.obey(order)
            else:
                self.send(name, order, now)
        states = self.turns.states
        self.over = len(states) == len(self.turns.names) and all(each.startswith("gone") for each in states.values())

    def hear(self, name, text):
        words = text.split()
        if self.turns is not None:
            if name in self.turns.names and len(words) in (2, 3) and words[1] in ("keep", "line", "held", "gone"):
                self.turns.hear(name, words[0][:64], " ".join(words[1:]))
        elif words and words[0] in ("keep", "take", "go") and all(word.isdigit() for word in words[1:]):
            self.obey(" ".join(words[:2]))
