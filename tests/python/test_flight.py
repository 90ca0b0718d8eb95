"""Reading what PyTorch's flight recorder dumps. Run by Flight (tests/integration/server_python_test.cpp). The dumps are made here in the format of torch's
FlightRecorder (version 2.x): there is no NCCL."""
import contextlib
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python"))
import flight

JOB = "a" * 32


def entry(number, function="nccl:all_reduce", state="completed", sizes=((3, 4),), types=("Float",), **more):
    made = {"record_id": number, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": number, "p2p_seq_id": 0, "op_id": number}
    made.update(profiling_name=function, input_sizes=[list(one) for one in sizes], input_dtypes=list(types), state=state, is_p2p=False)
    made.update(output_sizes=[[3, 4]], output_dtypes=["Float"], retired=False, timeout_ms=600000, time_created_ns=5, frames=[{"name": "f", "line": 1}])
    made.update(more)
    return made


def dump(*entries):
    return {"version": "2.4", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, "pg_status": {}, "entries": list(entries)}


class Malice:
    def __reduce__(self):
        return os.system, ("touch %s" % Malice.path,)


class FlightTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.TemporaryDirectory()
        self.folder = os.path.join(self.root.name, JOB, "flight")
        os.makedirs(self.folder)
        self.path = os.path.join(self.folder, "rank.0")

    def tearDown(self):
        self.root.cleanup()

    def read(self, data):
        with open(self.path, "wb") as file:
            file.write(data)
        return flight.read(self.path)

    def test_the_last_collectives_of_each_group(self):
        other = entry(2, "nccl:_all_gather_base", "started", ((8,), (), (2, 2)), ("Float", "Int", "Half"), process_group=("7", "a b\n"))
        point = entry(9, "nccl:send 0->1", is_p2p=True)
        data = pickle.dumps(dump(*[entry(number) for number in range(1, 41)], other, point), 2)
        rows = flight.collectives_of(self.read(data))
        self.assertEqual(rows[:2], [("0", 0, "member", "-", "-", "-"), ("0", 9, "completed", "all_reduce", "Float", "3x4")])
        self.assertEqual(len(rows), 1 + flight.LAST + 2)
        self.assertEqual(rows[-1], ("7", 2, "started", "_all_gather_base", "Float,Int,Half", "8,2x2"))

    def test_for_how_long_a_collective_has_been_pending(self):
        second = 10**9
        times = ("completed", 1), ("started", 30), ("scheduled", 100), ("scheduled", 107), ("started", 200)
        entries = [entry(number, state=state, time_created_ns=began * second) for number, (state, began) in enumerate(times, 1)]
        states = [row[2] for row in flight.collectives_of(dump(*entries), 109 * second)]
        self.assertEqual(states, ["member", "completed", "old", "scheduled", "recent", "recent"])

    def test_no_global_and_no_text_gets_through(self):
        Malice.path = os.path.join(self.root.name, "done")
        for data in (pickle.dumps(Malice()), pickle.dumps({"entries": [Malice()]}, 2), b"cos\nsystem\n(S'x'\ntR.", b"", b"\x80\x02.", b"(" * 100000, b"P1\n."):
            self.assertIsNone(self.read(data))
        self.assertFalse(os.path.exists(Malice.path))
        with open(self.path, "wb") as file:
            file.write(b"\x80\x02}r\xff\xff\xff\xff.")  # a table of 64 GiB
        limited = "import flight, resource; resource.setrlimit(resource.RLIMIT_AS, (flight.MOST_MEMORY,) * 2); print(flight.read(%r))" % self.path
        done = subprocess.run([sys.executable, "-B", "-c", limited], cwd=os.path.dirname(flight.__file__), stdout=subprocess.PIPE)
        self.assertEqual(done.stdout, b"None\n")
        odd = [None, 5, entry("1"), entry(0), entry(-1), entry(1 << 70), entry(1, function=None), entry(1, process_group=()), entry(1, process_group=[[]])]
        self.assertEqual(len(flight.collectives_of(dump(*odd))), 1)
        words = flight.collectives_of(dump(entry(1, "nccl:x\n@remote1 end", "a b", ((-1,),), ("F\n", 3))))[1]
        self.assertEqual(words, ("0", 1, "a_b", "x__remote1_end", "F_,-", "-"))
        for data in (None, [], {"pg_config": 3, "entries": 4}, {"entries": [[]]}):
            self.assertEqual(flight.collectives_of(data), [])
        os.symlink("/etc/passwd", self.path + "0")
        self.assertIsNone(flight.read(self.path + "0"))
        self.assertIsNone(flight.stamp(self.path + "0"))

    def test_a_rank_is_asked_and_answers(self):
        pipe = os.path.join(self.folder, "pipe.0.pipe")
        os.mkfifo(pipe)
        os.mkfifo(os.path.join(self.folder, "pipe.1.pipe"))  # its rank is gone
        with open(os.path.join(self.folder, "pipe.2.pipe"), "w"):
            pass  # no pipe
        with open(self.path, "wb") as file:
            file.write(pickle.dumps(dump(entry(1)), 2))  # of another time
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

        def rank():  # writes in two steps, as it pleases
            data = pickle.dumps(dump(entry(4, state="scheduled", time_created_ns=time.time_ns() - 10**10)), 2)
            while True:
                try:
                    if os.read(reader, 10):
                        break
                except BlockingIOError:
                    pass
            with open(self.path, "wb") as file:
                file.write(data[:50])
                file.flush()
                file.write(data[50:])

        thread = threading.Thread(target=rank)
        thread.start()
        told = io.StringIO()
        sys.argv = ["flight.py", self.root.name, JOB, "b" * 32]
        plain, flight.resource.setrlimit = flight.resource.setrlimit, lambda *_: None
        with contextlib.redirect_stdout(told):
            flight.main()
        flight.resource.setrlimit = plain
        thread.join()
        os.close(reader)
        rows = [json.loads(line) for line in told.getvalue().splitlines()]
        first = {"rank": 0, "group": "0", "number": 0, "state": "member", "function": "-", "types": "-", "shapes": "-"}
        self.assertEqual(rows, [first, dict(first, number=4, state="scheduled", function="all_reduce", types="Float", shapes="3x4")])


if __name__ == "__main__":
    unittest.main()
