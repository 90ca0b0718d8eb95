"""What ends this server's jobs: the script ender.sh, which is started before it is needed, because on slow storage its many files take long to
open. It waits for its order on a pipe, and goes when the lifeline does."""
import os


class Killer:
    def __init__(self, script):
        self.script = script
        self.at_work = None  # the id of the one that ends jobs
        self.waiting = None  # of the one that is ready, and the pipe

    def get_ready(self):
        try:
            read, write = os.pipe()
        except OSError:
            return
        try:
            pid = os.fork()
        except OSError:
            os.close(read)
            os.close(write)
            return
        if pid == 0:
            try:
                os.setsid()  # the script leaves alone what is in its own session
                os.dup2(read, 0)
                os.execvp("sh", ["sh", self.script])
            finally:
                os._exit(127)
        os.close(read)
        self.waiting = pid, write

    def begin(self, words):
        """Gives one its order, where one can be had."""
        for _ in range(2):  # the one that was ready may be gone
            if self.waiting is None:
                self.get_ready()
            if self.waiting is None:
                return
            pid, pipe = self.waiting
            self.waiting = None
            try:
                os.write(pipe, "\n".join(words + ["", ""]).encode())
                self.at_work = pid
                return
            except OSError:
                pass
            finally:
                os.close(pipe)

    def ended(self):
        """Of the one at work: None as long as it is, then whether it has left nothing."""
        try:
            pid, status = os.waitpid(self.at_work, os.WNOHANG)
            if pid == 0:
                return None
        except ChildProcessError:
            status = 0  # nobody waits for children where SIGCHLD is ignored
        self.at_work = None
        self.get_ready()
        return status == 0
