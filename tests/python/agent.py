"""Asks an agent, as a client does (src/wire): one request each. Set in the environment: REMOTE_AGENT, its program."""
import os
import struct
import subprocess

PROGRAM = os.environ.get("REMOTE_AGENT", "")
MESSAGE, DATA, END = 0, 1, 3


def to_cbor(value):
    def head(major, number):
        if number < 24:
            return bytes([major << 5 | number])
        for code, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
            if number < 1 << 8 * struct.calcsize(form):
                return bytes([major << 5 | code]) + struct.pack(form, number)
        raise ValueError(number)

    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(to_cbor, value))
    return head(5, len(value)) + b"".join(to_cbor(key) + to_cbor(each) for key, each in value.items())


def from_cbor(data):
    """The value at the beginning, and the rest."""
    major, number = data[0] >> 5, data[0] & 31
    data = data[1:]
    if major == 7:
        if number == 27:
            return struct.unpack(">d", data[:8])[0], data[8:]
        return {20: False, 21: True, 22: None}[number], data
    if number > 23:
        size = 1 << number - 24
        number, data = int.from_bytes(data[:size], "big"), data[size:]
    if major < 2:
        return (number if major == 0 else -1 - number), data
    if major == 3:
        return data[:number].decode(errors="replace"), data[number:]
    values = []
    for _ in range(number * (major - 3)):
        value, data = from_cbor(data)
        values.append(value)
    return (values if major == 4 else dict(zip(values[::2], values[1::2]))), data


def frame(kind, stream, payload=b""):
    return struct.pack(">IIB", len(payload), stream, kind) + payload


def ask(request, env=None, data=b""):
    """The messages of the answer, as dictionaries. `data` follows the request. Raises RuntimeError for a refusal."""
    data = frame(MESSAGE, 1, to_cbor(request)) + (frame(DATA, 1, data) if data else b"") + frame(END, 1) + frame(END, 0)
    with subprocess.Popen([PROGRAM, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as agent:
        agent.stdin.write(b"%d\n" % len(data) + data)
        agent.stdin.flush()  # its end would mean that nobody waits for the answer
        out = agent.stdout.read().partition(b"@remote-agent here\n")[2]
    assert agent.returncode == 0, agent.returncode
    messages = []
    while out:
        size, stream, kind = struct.unpack_from(">IIB", out)
        payload, out = out[9 : 9 + size], out[9 + size :]
        if stream == 1 and kind == MESSAGE:
            messages.append(from_cbor(payload)[0])
    for message in messages:
        if message["kind"] == "refusal":
            raise RuntimeError(message["reason"])
    return messages

