"""ECN markers for a switch's ports: those that a topology may name, their kernel probes and their set-up.

``red`` works on the actual queue of the port. ``nft`` is a phantom queue: a counter that drains at the port's rate, in
packets of the full size, and marks packets that exceed ``kmin_bytes``. It ignores ``kmax_bytes`` and ``pmax``, so no
figure about queues may rely on it. Its marks are counted per port. nftables' limits by bytes mark nothing at all
(FACTS 13).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hpn.testbed.entries import Registry
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.marking import Marker, frame_bytes
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.fabric.spec import EcnSpec
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.nftables.counters import NftCounters
from hpn.testbed.kernel.nftables.nft import Nft, NftError
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.red import LOOPBACK, ROOT, add_red

_TABLE, _PORT = "hpn_ecn", "port"


@dataclass(frozen=True, slots=True)
class MarkerKind:
    """A marking method: either a ``queue`` or nftables ``rules``.

    ``queue`` returns the queue inside a port's token bucket (ifindex, marker, limit in bytes, parent). ``rules``
    returns a switch's nftables rules, and ``counts`` reads their marks by ifindex (a queue counts by itself).
    ``problem``, called in a throw-away namespace, returns why this kernel does not support it.
    """

    name: str
    summary: str
    problem: Callable[[NetNs], str | None]
    queue: Callable[[int, Marker, int, int], bytes] | None = None
    rules: Callable[[Fabric, Node, Marker], str] | None = None
    counts: Callable[[NetNs], PhantomMarks] | None = None


class PhantomMarks:
    """Mark counters of a switch's phantom queues. OSError when the kernel refuses to report them."""

    def __init__(self, space: NetNs) -> None:
        self._counters = NftCounters(space, _TABLE)

    def read(self) -> Mapping[int, int]:
        """Return packets marked since the lab was wired, by ifindex, including those that the queue then dropped."""
        return {int(name.removeprefix(_PORT)): packets for name, packets in self._counters.packets().items()}

    def close(self) -> None:
        """Close the socket."""
        self._counters.close()


def _no_red(space: NetNs) -> str | None:
    link = Netlink(space)
    try:
        link.run([add_red(LOOPBACK, (10_000, 20_000), 0.5, 40_000, ROOT)])
    except OSError as error:
        way_out = "modprobe sch_red, or run it with --engine uml-virtual-time"
        return f"no marker red in this kernel ({error.strerror or error}); {way_out}"
    finally:
        link.close()
    return None


def _red(ifindex: int, marker: Marker, limit_bytes: int, parent: int) -> bytes:
    return add_red(ifindex, (marker.kmin_bytes, marker.kmax_bytes), marker.pmax, limit_bytes, parent)


def _no_egress(space: NetNs) -> str | None:
    try:
        rules = Nft(space)
    except MachineError as error:
        return f"no marker nft: {error}"
    try:
        rules.run(f"table netdev {_TABLE} {{\n{_chain(LOOPBACK, 'lo', 1000, 2)}}}\n")
    except NftError as error:
        return f"no marker nft in this kernel ({error}); a Linux of 5.16 or newer has netdev egress chains"
    finally:
        rules.close()
    return None


def _phantom_queues(fabric: Fabric, node: Node, marker: Marker) -> str:
    """Return a chain for each port of a switch."""
    frame = frame_bytes(fabric.spec)
    chains = []
    for link in fabric.links_of(node.name):
        port = link.end_at(node.name)
        packets = max(marker.kmin_bytes // frame, 1)
        chains.append(_chain(port.ifindex, port.name, link.rate_bps // (8 * frame), packets))
    return f"table netdev {_TABLE} {{\n{''.join(chains)}}}\n"


def _chain(ifindex: int, device: str, packets_per_s: int, burst: int) -> str:
    """Return the phantom queue of a port, and a counter of the same name for its marks."""
    name = f"{_PORT}{ifindex}"
    hook = f'type filter hook egress device "{device}" priority 0; policy accept'
    limit = f"limit rate over {max(packets_per_s, 1)}/second burst {burst} packets"
    marks = f"ip ecn {{ ect0, ect1 }} {limit} counter name {name} ip ecn set ce"
    return f"counter {name} {{\n}}\nchain {name} {{\n{hook}\n{marks}\n}}\n"


MARKERS: Registry[MarkerKind] = Registry(
    "marker",
    lambda kind: kind.name,
    [
        MarkerKind("red", "the kernel's RED on each port's queue", _no_red, queue=_red),
        MarkerKind(
            "nft", "a phantom queue, counted in packets", _no_egress, rules=_phantom_queues, counts=PhantomMarks
        ),
    ],
    of=MarkerKind,
)


def choose(wanted: EcnSpec | None) -> MarkerKind | None:
    """Return the marker of a lab: the requested one, or for 'auto' the first available; None without marking.

    MachineError, with a remedy, when it is not available. Needs the right to create network namespaces.
    """
    if wanted is None:
        return None
    problems = []
    for kind in MARKERS.values() if wanted.marker == "auto" else [MARKERS[wanted.marker]]:
        probe = ns.create("ecn-probe")
        try:
            problem = kind.problem(probe)
        finally:
            os.close(probe.fd)
        if problem is None:
            return kind
        problems.append(problem)
    raise MachineError("; ".join(problems))


def stands_in(chosen: MarkerKind | None, wanted: EcnSpec | None) -> bool:
    """Return True if a phantom queue replaces a queue-based marker that this kernel lacks. Pure."""
    return chosen is not None and chosen.queue is None and wanted is not None and wanted.marker == "auto"
