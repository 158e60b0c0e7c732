"""Traffic patterns over a fabric: senders, receivers and timing as streams and transfers of NICs, and their flows.
PURE.

Traffic stays in its rail, as collectives on rail-optimised fabrics do; spare hosts stay idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.traffic.flows.flow import MAX_FLOWS, SPORT_MAX, SPORT_MIN, FlowSpec, Transfers, default_sports
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.flows.partners import Pair, incast, near_and_far, pairs, permutation, probes
from hpn.traffic.flows.port_turns import PortTurns, turns_of


@dataclass(frozen=True, slots=True)
class PatternRequest:
    """Traffic settings of a drill, as input of a pattern."""

    fabric: Fabric
    seed: int
    across_segments: bool  # partners in other segments are preferred
    size_bytes: int | None = None  # of a transfer, for each queue pair; None: not given
    every_ns: int | None = None  # from the start of a transfer to that of the next


@dataclass(frozen=True, slots=True)
class Stream:
    """A constant-rate stream from one NIC to another for the whole run."""

    src: Nic
    dst: Nic


@dataclass(frozen=True, slots=True)
class Transfer:
    """A periodic transfer from one NIC to another: ``size_bytes`` on each queue pair, repeated every ``every_ns``."""

    src: Nic
    dst: Nic
    size_bytes: int
    every_ns: int


Demand = Sequence[Stream | Transfer]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Sending pairs and their timing; a pair of NICs may come twice. ``timed``: it uses size and every."""

    name: str
    summary: str  # for docs/drills.md
    demand: Callable[[PatternRequest], Demand]
    timed: bool = False


def _streams(pairs_of: Callable[[Fabric, int, bool], list[Pair]]) -> Callable[[PatternRequest], Demand]:
    return lambda asked: [Stream(*pair) for pair in pairs_of(asked.fabric, asked.seed, asked.across_segments)]


def bursts(asked: PatternRequest) -> Demand:
    """Return the pairs of ``permutation`` as transfers that all begin at once. InputError without size and every."""
    if asked.size_bytes is None or asked.every_ns is None:
        raise InputError(
            "the pattern 'bursts' sends transfers; write both size and every, such as size: 1 MB and every: 500 ms"
        )
    chosen = permutation(asked.fabric, asked.seed, asked.across_segments)
    return [Transfer(src, dst, asked.size_bytes, asked.every_ns) for src, dst in chosen]


PATTERNS: Registry[Pattern] = Registry(
    "pattern",
    lambda pattern: pattern.name,
    (
        Pattern(
            "permutation", "on each rail every NIC sends to one other and receives from one", _streams(permutation)
        ),
        Pattern("pairs", "two by two, both ways", _streams(pairs)),
        Pattern("incast", "one NIC of each rail is sent to by all others", _streams(incast)),
        Pattern("near-and-far", "every NIC sends to one of its rack and to one of another", _streams(near_and_far)),
        Pattern(
            "probes",
            "as `near-and-far`, and where rails meet to two NICs of the next rail: paths that locate a fault",
            _streams(probes),
        ),
        Pattern(
            "bursts",
            "as `permutation`, but every queue pair sends `size` at once `every` so often, all of them"
            " together. Between them it pauses, as training does between its collectives",
            bursts,
            timed=True,
        ),
    ),
    of=Pattern,
)
"""Traffic patterns, by their name in a drill file."""


def rate_pps(nic: Nic, load: float, queue_pairs: int, path_mtu: int) -> float:
    """Return the packet rate (1/s) of each of ``queue_pairs`` that together fill ``load`` (0 .. 1) of the NIC."""
    rate_bps = sum(link.rate_bps for link in nic.links)
    return rate_bps * load / queue_pairs / (8 * wire_bytes(path_mtu))


def flows_for(
    fabric: Fabric,
    pattern: str,
    *,
    load: float,
    queue_pairs: int = 1,
    path_mtu: int = 4096,
    seed: int | None = None,
    across_segments: bool = True,
    ib_timeout: int = 14,
    retry_count: int = 7,
    size_bytes: int | None = None,
    every_ns: int | None = None,
) -> list[FlowSpec]:
    """Return the flows of a pattern, ``queue_pairs`` for each pair of NICs; ``seed`` defaults to the fabric's.

    A NIC that sends to several destinations spreads ``load`` over them. For transfers, that is its load while it sends.
    A transfer is ``size_bytes`` rounded up to whole packets. Source ports are those that a RoCE stack picks for the
    queue pair numbers, or the next free one of the NIC. InputError when the pattern is unknown or does not fit.
    """
    if pattern not in PATTERNS:
        raise InputError(f"unknown traffic pattern {pattern!r}; write {' or '.join(PATTERNS)}")
    asked = PatternRequest(fabric, fabric.spec.seed if seed is None else seed, across_segments, size_bytes, every_ns)
    chosen = PATTERNS[pattern].demand(asked)
    if not chosen:
        raise InputError(f"the pattern {pattern!r} finds nobody to send here; take another, or another topology")
    check_number(len(chosen) * queue_pairs)
    destinations: dict[str, int] = {}
    for each in chosen:
        destinations[each.src.name] = destinations.get(each.src.name, 0) + 1
    flows = NewFlows(path_mtu, ib_timeout, retry_count, turns_of(fabric, queue_pairs))
    return [
        flows.between(
            each.src,
            each.dst,
            k,
            rate_pps(each.src, load, queue_pairs * destinations[each.src.name], path_mtu),
            _transfers(each, path_mtu),
        )
        for each in chosen
        for k in range(queue_pairs)
    ]


def check_number(queue_pairs: int) -> None:
    """Raise InputError if there are not enough queue pair numbers."""
    if queue_pairs > MAX_FLOWS:
        raise InputError(f"{queue_pairs} queue pairs; at most {MAX_FLOWS} fit: lower queue_pairs")


def _transfers(each: Stream | Transfer, path_mtu: int) -> Transfers | None:
    if isinstance(each, Stream):
        return None
    return Transfers(max(1, -(-each.size_bytes // path_mtu)), each.every_ns)


class NewFlows:
    """Factory of queue pairs: numbers in order, with the source ports that a RoCE stack picks for them.

    ``turns``: the ports to which adapters bind them; None: they do not.
    """

    def __init__(self, path_mtu: int, ib_timeout: int, retry_count: int, turns: PortTurns | None = None) -> None:
        self._path_mtu, self._ib_timeout, self._retry_count = path_mtu, ib_timeout, retry_count
        self._ports = _SourcePortsInUse()
        self._made = 0
        self._turns = turns

    def between(self, src: Nic, dst: Nic, k: int, rate_pps: float, transfers: Transfers | None = None) -> FlowSpec:
        """Return the ``k``-th queue pair from one NIC to another. InputError when a NIC has no source port left."""
        number, self._made = self._made, self._made + 1
        sport, ack_sport = default_sports(number)
        return FlowSpec(
            id=number,
            name=f"{src.name}>{dst.name}#{k}",
            src_nic=src.name,
            dst_nic=dst.name,
            src_ip=src.ip,
            dst_ip=dst.ip,
            sport=self._ports.take(src.name, sport),
            ack_sport=self._ports.take(dst.name, ack_sport),
            rate_pps=rate_pps,
            path_mtu=self._path_mtu,
            ib_timeout=self._ib_timeout,
            retry_count=self._retry_count,
            transfers=transfers,
            port=None if self._turns is None else self._turns.of_sender(src, dst, k),
            ack_port=None if self._turns is None else self._turns.of_receiver(src, dst, k),
        )


class _SourcePortsInUse:
    """Source ports in use, per NIC."""

    def __init__(self) -> None:
        self._used: dict[str, set[int]] = {}

    def take(self, nic: str, wanted: int) -> int:
        """Reserve and return ``wanted``, or the next free port after it."""
        used = self._used.setdefault(nic, set())
        for port in _round_from(wanted):
            if port not in used:
                used.add(port)
                return port
        raise InputError(f"{nic} has more queue pairs than source ports ({len(used)}); lower queue_pairs")


def _round_from(port: int) -> Iterator[int]:
    yield from range(port, SPORT_MAX + 1)
    yield from range(SPORT_MIN, port)
