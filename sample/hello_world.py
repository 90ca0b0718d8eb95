"""Says where it runs and which rank it is: the shortest program to try a server with."""
import os
import platform
import socket

rank = os.environ.get("RANK")
place = f"rank {rank} of {os.environ.get('WORLD_SIZE')}" if rank is not None else "no launch"
print(f"Hello from {socket.gethostname()}: {place}, Python {platform.python_version()}, in {os.getcwd()}", flush=True)
