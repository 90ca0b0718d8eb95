"""Distributed runs: ``labml_remote.distributed.torch_launch.launch()``."""
