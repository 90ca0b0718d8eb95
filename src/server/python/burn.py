"""`remote check --burn`: how fast this rank's device computes, and how fast the ranks exchange data. Each rank runs it.

argv: its time limit in seconds. It prints messages, each a line "remote-burn JSON" (src/wire/burn.hpp).
"""
import json
import os
import sys
import threading
import time


def report(kind, **fields):
    os.write(1, ("remote-burn " + json.dumps(dict(fields, kind=kind)) + "\n").encode())


def plain(text):
    return "".join(c if c.isalnum() and c < "\x80" or c in ".-" else " " for c in text).strip()[:100] or "unknown"


SECONDS = float(sys.argv[1])
# If the ranks cannot find each other, the libraries would wait for half an hour.
timer = threading.Timer(SECONDS * 3 + 90, lambda: (report("failed", problem="timeout"), os._exit(1)))
timer.daemon = True  # a rank that fails on its own must not wait for it
timer.start()
try:
    import torch
except ImportError:
    report("failed", problem="no_torch")
    os._exit(1)
try:
    import torch.distributed as dist
    from torch.distributed.rendezvous import rendezvous
except ImportError:
    report("failed", problem="no_distributed")
    os._exit(1)


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return "CPU"


RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
CUDA = torch.cuda.is_available()
if CUDA:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    DEVICE = torch.device("cuda", torch.cuda.current_device())
    NAME = torch.cuda.get_device_name()
    newer = torch.version.hip or torch.cuda.get_device_capability() >= (8, 0)
    TYPE = torch.bfloat16 if newer else torch.float16
else:
    DEVICE = torch.device("cpu")
    NAME = processor()
    TYPE = torch.float32
CAN = "nccl" if CUDA and dist.is_nccl_available() else "gloo"


def agree(store):
    """Returns the backend for all ranks. Rank 0 decides: if each rank chose for itself, they could wait for each other."""
    store.set("can/%d" % RANK, CAN)
    if RANK == 0:
        all_can = all(store.get("can/%d" % rank) == b"nccl" for rank in range(RANKS))
        store.set("backend", "nccl" if all_can else "gloo")
    return store.get("backend").decode()


def ready():
    if CUDA:
        torch.cuda.synchronize()


def product():
    """Multiplies matrices for the given time. Returns 10^12 operations per second."""
    size = 8192 if CUDA else 1024
    a = torch.randn(size, size, device=DEVICE).to(TYPE)
    b = torch.randn(size, size, device=DEVICE).to(TYPE)
    for _ in range(3):
        torch.mm(a, b)
    ready()
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < SECONDS * 0.6:
        for _ in range(10 if CUDA else 1):
            torch.mm(a, b)
            count += 1
        ready()
    return 2.0 * size**3 * count / (time.perf_counter() - begun) / 1e12


def often(work, seconds):
    """The average duration of `work`, in which all ranks take part. The slowest rank determines how often it is repeated."""
    for _ in range(2):
        work()
    ready()
    begun = time.perf_counter()
    work()
    ready()
    once = time.perf_counter() - begun
    longest = torch.tensor([once], device=WIRE)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    count = max(1, min(1000, int(seconds / max(float(longest), 1e-6))))
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(count):
        work()
    ready()
    return (time.perf_counter() - begun) / count


def all_reduce():
    """The bus bandwidth in Gbit/s as in nccl-tests: the load on each link."""
    data = torch.ones((64 if BACKEND == "nccl" else 8) << 20, device=WIRE)
    took = often(lambda: dist.all_reduce(data), SECONDS * 0.2)
    return data.numel() * 4 * 8 * 2 * (RANKS - 1) / RANKS / took / 1e9


def links():
    """Each rank with the next one: first the pairs that start with an even rank, then the others."""
    data = torch.ones((16 if BACKEND == "nccl" else 4) << 20, device=WIRE)
    for first in (0, 1):
        partner = RANK + 1 if RANK % 2 == first else RANK - 1

        def there_and_back(partner=partner):
            if not 0 <= partner < RANKS:
                return
            if RANK < partner:
                dist.send(data, partner)
                dist.recv(data, partner)
            else:
                dist.recv(data, partner)
                dist.send(data, partner)

        took = often(there_and_back, SECONDS * 0.1)
        if RANK < partner < RANKS:
            report("link", **{"from": RANK, "to": partner, "gbit_s": round(data.numel() * 4 * 8 * 2 / took / 1e9, 9)})


BACKEND = CAN
if CAN == "gloo":
    report("lacks", what="nccl" if CUDA else "cuda")
if RANKS > 1:
    os.environ.setdefault("USE_LIBUV", "0")  # Debian's torch 2.6 was built without it, and rejects the default of 2.4 and later
    meeting = dist.PrefixStore("remote-burn", next(iter(rendezvous("env://")))[0])
    BACKEND = agree(meeting)
    dist.init_process_group(BACKEND, store=meeting, rank=RANK, world_size=RANKS)
    dist.barrier()
WIRE = DEVICE if BACKEND == "nccl" else torch.device("cpu")  # the device that holds the exchanged data
tflops = product()
bus = 0.0
if RANKS > 1:
    dist.barrier()
    bus = all_reduce()
    links()
    dist.barrier()
report("device", rank=RANK, backend=BACKEND, type=str(TYPE).replace("torch.", ""), tflops=round(tflops, 6), bus_gbit_s=round(bus, 9), name=plain(NAME))
sys.stdout.flush()
os._exit(0)
