"""What lets this server listen and try many others at once: a part of pairs.py, which stands before it."""


class Loop:
    """Runs what waits for sockets. A task yields (socket, events, seconds) and gets whether something came."""

    def __init__(self):
        self.poll = select.poll()
        self.waiting = {}  # file descriptor: task, deadline
        self.queue = []  # tasks that have not begun
        self.limited = {}  # the tasks that have begun: what is called with the exception that ends one
        self.on_read = {}  # file descriptor: what is called when there is something to read

    def watch(self, fd, call):
        self.on_read[fd] = call
        self.poll.register(fd, select.POLLIN)

    def forget(self, fd):
        del self.on_read[fd]
        self.poll.unregister(fd)

    def later(self, task, failed):
        """Begins the task when there is room. `failed` is called with the exception that ends it early."""
        self.queue.append((task, failed))

    def step(self, task, came):
        try:
            sock, events, seconds = task.send(came)
        except StopIteration:
            self.limited.pop(task, None)
            return
        except (OSError, ValueError, TypeError, ArithmeticError) as error:  # also by what another server says
            failed = self.limited.pop(task, None)
            if failed:
                failed(error)
            return
        self.waiting[sock.fileno()] = task, time.monotonic() + max(0, seconds)
        self.poll.register(sock, events)

    def wake(self, fd, came):
        self.poll.unregister(fd)
        self.step(self.waiting.pop(fd)[0], came)

    def idle(self):
        return not self.limited and not self.queue

    def turn(self, seconds):
        while self.queue and len(self.limited) < AT_ONCE:
            task, failed = self.queue.pop(0)
            self.limited[task] = failed
            self.step(task, None)
        now = time.monotonic()
        limit = min([now + seconds] + [deadline for _, deadline in self.waiting.values()])
        for fd, _ in self.poll.poll(max(0, limit - now) * 1000 + 1):
            if fd in self.on_read:
                self.on_read[fd]()
            elif fd in self.waiting:
                self.wake(fd, True)
        now = time.monotonic()
        for fd in [fd for fd, (_, deadline) in self.waiting.items() if deadline <= now]:
            if fd in self.waiting:
                self.wake(fd, False)
