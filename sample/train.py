"""Trains a small network on scikit-learn's handwritten digits, on all ranks of a launch together.

It needs nothing but the environment variables that a launch sets (MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK,
LOCAL_RANK, LOCAL_WORLD_SIZE; and INIT_METHOD, where the ranks are to find each other by a URL or a shared file), so `remote torch-launch`, torchrun and a plain shell loop all work. Without them it is
a run of a single rank. It uses NCCL where every local rank has a GPU of its own, and gloo on the CPU otherwise.
"""
import argparse
import hashlib
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64, help="over all ranks together")
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    # Older launchers add this to the command; the environment says the same.
    parser.add_argument("--local_rank", "--local-rank", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def start():
    """Joins the other ranks; returns (rank, world size, device)."""
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"),
                        ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")):
        os.environ.setdefault(name, value)
    local_rank = int(os.environ["LOCAL_RANK"])
    local_world_size = int(os.environ.get("LOCAL_WORLD_SIZE", local_rank + 1))
    if torch.cuda.is_available() and torch.cuda.device_count() >= local_world_size:
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
        backend = "nccl"
    else:
        device = torch.device("cpu")
        backend = "gloo"
    dist.init_process_group(backend, init_method=os.environ.get("INIT_METHOD", "env://"),
                            rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    return dist.get_rank(), dist.get_world_size(), device


def load_data():
    """The digits as (training set, test set): every fifth image is for the test."""
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images, dtype=torch.float32) / 16
    labels = torch.tensor(labels)
    test = torch.arange(len(labels)) % 5 == 0
    return TensorDataset(images[~test], labels[~test]), TensorDataset(images[test], labels[test])


def mean_over_ranks(total, count, device):
    both = torch.tensor([total, count], dtype=torch.float64, device=device)
    dist.all_reduce(both)
    return (both[0] / both[1]).item()


def train_epoch(model, loader, optimizer, device):
    """One pass over this rank's share; returns the mean loss over all ranks."""
    model.train()
    total = count = 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()  # DistributedDataParallel averages the gradients over the ranks here
        optimizer.step()
        total += loss.item() * len(labels)
        count += len(labels)
    return mean_over_ranks(total, count, device)


def accuracy(model, data, rank, world_size, device):
    """The share of right answers; each rank looks at its part of the test set."""
    model.eval()
    images, labels = (part[rank::world_size].to(device) for part in data.tensors)
    with torch.no_grad():
        # The bare model: ranks have parts of different sizes, and DistributedDataParallel would wait for the others.
        right = (model.module(images).argmax(dim=1) == labels).sum().item()
    return mean_over_ranks(right, len(labels), device)


def checksum(model):
    """A digest of every bit of the parameters."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def main():
    arguments = parse_arguments()
    began = time.monotonic()
    rank, world_size, device = start()
    print(f"rank {rank} of {world_size} on {socket.gethostname()}, device {device}, {dist.get_backend()}", flush=True)

    torch.manual_seed(1 + rank)  # different on purpose: DistributedDataParallel gives all ranks rank 0's parameters
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    model = DistributedDataParallel(model.to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.learning_rate)

    train_data, test_data = load_data()
    sampler = DistributedSampler(train_data, num_replicas=world_size, rank=rank, shuffle=True, seed=0)
    loader = DataLoader(train_data, batch_size=max(1, arguments.batch_size // world_size), sampler=sampler)

    for epoch in range(1, arguments.epochs + 1):
        sampler.set_epoch(epoch)  # another order in every epoch
        loss = train_epoch(model, loader, optimizer, device)
        if rank == 0:
            print(f"epoch {epoch:3}  loss {loss:.4f}", flush=True)

    share = accuracy(model, test_data, rank, world_size, device)
    checksums = [None] * world_size
    dist.all_gather_object(checksums, checksum(model))
    equal = len(set(checksums)) == 1
    print(f"rank {rank}: parameter checksum {checksums[rank]}", flush=True)
    if rank == 0:
        print(f"test accuracy {100 * share:.1f} %", flush=True)
        print("all ranks have the same parameters" if equal else f"the parameters differ: {checksums}", flush=True)
        print(f"finished after {time.monotonic() - began:.1f} s", flush=True)
    return 0 if equal and share > 0.95 else 1


if __name__ == "__main__":
    code = main()
    # Out without destructors: gloo's process group joins its threads while it holds the interpreter's lock, and a
    # thread that still wants that lock then hangs the rank for ever (seen with torch 1.13, one run in a few).
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
