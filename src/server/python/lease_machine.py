"""What a machine has that can be leased: a part of lease.py. Python 3.6 or later, standard library only."""
import os
import re
import subprocess
from collections import namedtuple

KEY = re.compile(r"[A-Za-z0-9:._-]{1,100}")

Gpu = namedtuple("Gpu", "vendor index key pids")
# `key` names the GPU on this machine for all users; `pids` have memory of it.


class Refused(Exception):
    """This machine offers no leases; why."""


def run(words):
    """The output of a program; None where it cannot be run or fails."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # 15: a GPU has fallen off the bus; the others answer nevertheless
    return done.stdout.decode(errors="replace") if done.returncode in (0, 15) else None


def nvidia_gpus():
    text = run(["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader,nounits"])
    if text is None:
        return []
    found = [[word.strip() for word in line.split(",")] for line in text.splitlines()]
    found = [words for words in found if len(words) == 2 and words[0].isdigit() and KEY.fullmatch(words[1])]
    apps = run(["nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory,process_name", "--format=csv,noheader,nounits"])
    if apps is None:
        raise Refused("nvidia-smi does not tell which processes use its GPUs")
    pids = {}
    for line in apps.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) >= 2 and words[1].isdigit():
            pids.setdefault(words[0], []).append(int(words[1]))
    return [Gpu("nvidia", int(index), uuid, pids.get(uuid, [])) for index, uuid in found]


def amd_gpus():
    """As the kernel's driver tells in /sys, for everybody: the order is ROCm's."""
    ids = []
    nodes = "/sys/class/kfd/kfd/topology/nodes"
    try:
        for node in sorted(os.listdir(nodes), key=int):
            with open("%s/%s/gpu_id" % (nodes, node)) as file:
                ids.append(file.read().strip())
    except (OSError, ValueError):
        return []
    pids = {}
    try:
        for pid in os.listdir("/sys/class/kfd/kfd/proc"):
            for name in os.listdir("/sys/class/kfd/kfd/proc/" + pid):
                if name.startswith("vram_"):
                    with open("/sys/class/kfd/kfd/proc/%s/%s" % (pid, name)) as file:
                        if file.read().strip() not in ("", "0"):
                            pids.setdefault(name[5:], []).append(int(pid))
    except (OSError, ValueError):
        pass
    ids = [each for each in ids if each.isdigit() and each != "0"]
    return [Gpu("amd", index, "amd:" + each, pids.get(each, [])) for index, each in enumerate(ids)]


def intel_gpus():
    """Intel's program tells of processes to root alone: only leases count."""
    text = run(["xpu-smi", "discovery", "--dump", "1,2"]) or ""
    rows = [line.split(",")[0].strip() for line in text.splitlines()[1:]]
    return [Gpu("intel", int(row), "intel:" + row, []) for row in rows if row.isdigit()]


def gpus_here():
    """Those of the first vendor that has some."""
    return nvidia_gpus() or amd_gpus() or intel_gpus()


def memory_here():
    """Bytes in all, and those that programs can still get."""
    values = {}
    with open("/proc/meminfo") as file:
        for line in file:
            words = line.split()
            if words[0] in ("MemTotal:", "MemAvailable:"):
                values[words[0]] = int(words[1]) * 1024
    return values["MemTotal:"], values.get("MemAvailable:", values["MemTotal:"])


def variables(chosen):
    """By which programs see these GPUs alone."""
    if not chosen:
        return {}
    text = ",".join(str(gpu.index) for gpu in chosen)
    if chosen[0].vendor == "nvidia":
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": text}
    if chosen[0].vendor == "amd":
        return {"ROCR_VISIBLE_DEVICES": text}
    return {"ZE_AFFINITY_MASK": text}
