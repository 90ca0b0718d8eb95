#!/usr/bin/env python3
"""Replaces a server's agent: runs remote-agent.real and changes its replies.

A test replaces CHANGE below with the name of one of CHANGES. The changed value is a fixed-size number after its CBOR
key.
"""
import os
import struct
import subprocess
import sys

AHEAD_MS = 60_000
CHANGES = {
    # Its clock is a minute ahead: the key is a text of five bytes, and then comes a number of eight.
    "clock": (b"\x65clock\x1b", ">Q", lambda clock: clock + AHEAD_MS),
    # It reports that it listens on port 0: a text of five bytes, a list of two, and a number of two bytes.
    "ports": (b"\x65ports\x82\x19", ">H", lambda port: 0),
}


def main():
    real = os.path.abspath(__file__) + ".real"
    if sys.argv[1] != "serve":
        os.execv(real, [real, *sys.argv[1:]])
    key, form, change = CHANGES["CHANGE"]
    child = subprocess.Popen([real, *sys.argv[1:]], stdout=subprocess.PIPE)
    while True:
        data = os.read(child.stdout.fileno(), 1 << 20)
        if not data:
            return child.wait()
        at = data.find(key) + len(key)
        if at >= len(key):
            value = change(struct.unpack_from(form, data, at)[0])
            data = data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]
        os.write(1, data)


sys.exit(main())
