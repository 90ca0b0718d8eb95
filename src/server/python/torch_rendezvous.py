"""The c10d rendezvous of torchrun's agents. torch_agent.py imports it.

- An agent is identified by the address from which it reaches the first server. So the servers' names do not have to be
  resolvable, and an entry of 127.0.1.1 for a name does no harm. The nodes get their ranks in the order of the launch.
- The agents exchange pickles through a store that anybody can write to. The rendezvous `remote_c10d` is c10d with every state
  signed with the launch's key, which is checked before unpickling.

Python 3.6 or later, standard library only.
"""
import os
import sys

LAST_CALL_SECONDS = 1  # how long to wait for nodes that may still join if one is known to be lost
SIGNED = "remote_c10d"  # the name of our rendezvous


def own_address(endpoint, own_rank):
    """The address of this server that the others can reach."""
    import socket

    host, _, port = endpoint.rpartition(":")
    host = host.strip("[]")
    if own_rank != 0:
        for family, _, _, _, where in socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM):
            with socket.socket(family, socket.SOCK_DGRAM) as probe:  # this sends no packet
                try:
                    probe.connect(where)
                except OSError:
                    continue
                return probe.getsockname()[0]
    return host


def go_by_address(address):
    """Before 2.0, torch has no --local_addr and uses socket.getfqdn() as the name of this node and, on the first node, as
    MASTER_ADDR."""
    os.environ["PET_LOCAL_ADDR"] = address  # --local_addr

    def teach(module):
        import socket

        if "local_addr" not in module.LaunchConfig.__dataclass_fields__:
            socket.getfqdn = lambda name="": address

    return teach


def order_nodes(own_rank):
    """torch orders the nodes of a rendezvous by their names, without an option to change that; here, their assigned numbers
    decide."""

    def teach(module):
        module.DynamicRendezvousHandler._node_desc_generator._local_id = own_rank
        module.sorted = lambda nodes: sorted(sorted(nodes), key=lambda node: getattr(node, "local_id", 0))

    return teach


def offer_signed_rendezvous(key, agent):
    """Registers `remote_c10d` with torch. If that fails, torch does not know this rendezvous and refuses to start."""

    def teach(_):
        from torch.distributed.elastic.rendezvous.api import rendezvous_handler_registry

        rendezvous_handler_registry.register(SIGNED, lambda parameters: signed_rendezvous(parameters, key, agent))

    return teach


def signed_rendezvous(parameters, key, agent):
    from datetime import timedelta

    try:
        from torch.distributed.elastic.rendezvous import RendezvousStateError
        from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
        from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
            DynamicRendezvousHandler,
            RendezvousBackend,
            RendezvousTimeout,
        )
        from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
    except ImportError as error:
        sys.exit("remote: this torch's c10d rendezvous is not the one that remote can sign (%s); use --rdzv static" % error)
    if not key:
        sys.exit("remote: the launch's key for the rendezvous is missing")

    host, port = parse_rendezvous_endpoint(parameters.endpoint, 29400)
    store = open_store(host, port, parameters.get_as_bool("is_host"))
    plain = C10dRendezvousBackend(store, parameters.run_id)

    class Signed(RendezvousBackend):
        name = SIGNED

        def get_state(self):
            found = plain.get_state()
            return found and (self.verified(found[0]),) + tuple(found[1:])

        def set_state(self, state, token=None):
            found = plain.set_state(signature(key, parameters.run_id, state) + state, token)
            return found and (self.verified(found[0]),) + tuple(found[1:])

        def verified(self, state):
            import hmac

            text = state[32:]
            if not hmac.compare_digest(state[:32], signature(key, parameters.run_id, text)):
                raise RendezvousStateError(
                    "the state in the store at %s port %s is not signed by this launch: another program wrote there" % (host, port)
                )
            return text

    class Timeout(RendezvousTimeout):
        @property
        def last_call(self):
            return timedelta(seconds=LAST_CALL_SECONDS) if agent.left()[0] else super().last_call

    timeout = Timeout(last_call=timedelta(seconds=parameters.get_as_int("last_call_timeout", 30)))
    more = {"local_addr": parameters.local_addr} if hasattr(parameters, "local_addr") else {}  # since torch 2.0
    return DynamicRendezvousHandler.from_backend(
        parameters.run_id, store, Signed(), parameters.min_nodes, parameters.max_nodes, timeout=timeout, **more
    )


def signature(key, run_id, state):
    import hmac

    return hmac.new(key.encode(), run_id.encode() + b"\0" + state, "sha256").digest()


def open_store(host, port, is_host):
    """The store of the rendezvous. On the first server, it listens only at the launch's address, if torch supports that (since
    2.1)."""
    import socket
    from datetime import timedelta

    from torch.distributed import TCPStore

    options = {"is_master": is_host, "timeout": timedelta(seconds=60)}
    if is_host:
        try:
            family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(1024)
        except OSError:
            pass  # a translated address does not belong to this server
        else:
            try:
                # libuv's store does not accept a listener before 2.4
                store = TCPStore(host, port, master_listen_fd=listener.fileno(), use_libuv=False, **options)
                listener.detach()  # the store owns it now
                return store
            except TypeError:
                listener.close()
    return TCPStore(host, port, **options)


def meet(endpoint, key, agent, after_import):
    """after_import(NAME, FUNCTION) calls FUNCTION with the module."""
    own_rank = int(os.environ.get("NODE_RANK", "0"))
    after_import("torch.distributed.elastic.rendezvous.registry", offer_signed_rendezvous(key, agent))
    after_import("torch.distributed.elastic.rendezvous.dynamic_rendezvous", order_nodes(own_rank))
    after_import("torch.distributed.launcher.api", go_by_address(own_address(endpoint, own_rank)))
