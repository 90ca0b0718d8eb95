"""A training without torch, to try servers out: each rank fits a line to points of its own, and after every step all take the
mean of their gradients. Rank 0 listens at MASTER_ADDR:MASTER_PORT, as torch's ranks do. Needs Python 3 and nothing else."""

import json
import os
import random
import socket
import time

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ADDRESS = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def meet():
    """The other ends: of rank 0 one for each other rank, else rank 0 alone."""
    if RANK == 0:
        server = socket.create_server(ADDRESS)
        return [server.accept()[0].makefile("rw") for _ in range(WORLD - 1)]
    for _ in range(600):
        try:
            return [socket.create_connection(ADDRESS).makefile("rw")]
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise SystemExit(f"rank 0 does not listen at {ADDRESS}")


def send(peer, value):
    peer.write(json.dumps(value) + "\n")
    peer.flush()


def mean(peers, values):
    """The mean of the values of all ranks; the same on each."""
    if RANK != 0:
        send(peers[0], values)
        return json.loads(peers[0].readline())
    rows = [values] + [json.loads(peer.readline()) for peer in peers]
    result = [sum(column) / WORLD for column in zip(*rows)]
    for peer in peers:
        send(peer, result)
    return result


def main():
    peers = meet()
    points = random.Random(RANK)
    slope = offset = 0.0
    for step in range(1, 101):
        xs = [points.uniform(-1, 1) for _ in range(64)]
        errors = [(slope * x + offset) - (3 * x + 1) for x in xs]
        gradient = [sum(e * x for e, x in zip(errors, xs)) / 64, sum(errors) / 64, sum(e * e for e in errors) / 64]
        by_slope, by_offset, loss = mean(peers, gradient)
        slope, offset = slope - 0.3 * by_slope, offset - 0.3 * by_offset
        if RANK == 0 and step % 20 == 0:
            print(f"step {step:3} loss {loss:.4f}")
    print(f"rank {RANK} of {WORLD}: y = {slope:.2f} x + {offset:.2f}")


main()
