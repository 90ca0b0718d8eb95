"""What this server knows of addresses and ways: a part of pairs.py, which stands before it.

The kernel tells it by rtnetlink(7), so that no program is started for each of many servers.
"""


def netlink(kind, flags, body):
    """The answers to one request: pairs of a type and its bytes. Raises OSError with the kernel's reason."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
        sock.settimeout(2)
        sock.sendall(struct.pack("=IHHII", 16 + len(body), kind, flags | 1, 1, 0) + body)
        answers = []
        while True:
            data = sock.recv(1 << 18)
            while len(data) >= 16:
                size, answer = struct.unpack_from("=IH", data)
                if answer == 3 or size < 16:  # NLMSG_DONE
                    return answers
                if answer == 2:  # NLMSG_ERROR
                    code = -struct.unpack_from("=i", data, 16)[0]
                    raise OSError(code, os.strerror(code))
                answers.append((answer, data[16:size]))
                data = data[(size + 3) & ~3 :]
            if not flags:
                return answers


def attributes(data):
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        if size < 4:
            break
        found.setdefault(kind, data[4:size])
        data = data[(size + 3) & ~3 :]
    return found


def packed(address):
    """The family and the bytes of an address; None for a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return family, socket.inet_pton(family, address)
        except (OSError, UnicodeError):
            pass
    return None


def own_addresses():
    """For each interface its addresses that others may know; for `lo` all."""
    found = {name: [] for _, name in socket.if_nameindex()}
    names = dict(socket.if_nameindex())
    for kind, data in netlink(22, 0x300, struct.pack("=BBBBI", 0, 0, 0, 0, 0)):  # RTM_GETADDR, dump
        if kind != 20:  # RTM_NEWADDR
            continue
        family, _, _, scope, index = struct.unpack_from("=BBBBI", data)
        parts = attributes(data[8:])
        value = parts.get(2, parts.get(1))  # IFA_LOCAL, IFA_ADDRESS
        name = names.get(index)
        if name and value and family in (socket.AF_INET, socket.AF_INET6) and (scope == 0 or name == "lo"):
            found[name].append(socket.inet_ntop(family, value))
    return found


def way_to(address, interfaces):
    """The interface that leads to an address, and this server's own address there; None where that is not known."""
    family, value = packed(address)
    body = struct.pack("=BBBBBBBBI", family, len(value) * 8, 0, 0, 0, 0, 0, 0, 0)
    body += struct.pack("=HH", 4 + len(value), 1) + value  # RTA_DST
    try:
        answers = netlink(26, 0, body)  # RTM_GETROUTE
    except OSError:
        return None, None
    for _, data in answers:
        parts = attributes(data[12:])
        source = socket.inet_ntop(family, parts[7]) if 7 in parts else None  # RTA_PREFSRC
        if data[7] == 2:  # RTN_LOCAL: the others reach it by the interface that has it
            for name, addresses in interfaces.items():
                if address in addresses:
                    return name, address
        if 4 in parts:  # RTA_OIF
            index = struct.unpack("=i", parts[4])[0]
            return dict(socket.if_nameindex()).get(index), source
    return None, None


def resolve(names):
    """Names with their addresses. A name server that does not answer holds up nobody for long."""
    found = {name: [name] for name in names if packed(name)}

    def ask(name):
        try:
            infos = socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            infos = []
        addresses = []
        for info in infos:
            address = info[4][0].partition("%")[0]
            if address not in addresses:
                addresses.append(address)
        found[name] = addresses[:8]

    asked = sorted(set(names) - set(found))
    if asked:
        import threading

        threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in asked]
        for thread in threads:
            thread.start()
        end = time.monotonic() + RESOLVE_SECONDS
        for thread in threads:
            thread.join(max(0, end - time.monotonic()))
    return {name: found.get(name, []) for name in names}
