"""Timers that run between events, as far as events and specification tell. Pure.

Changes when another protocol's timer is known: one entry of ``TIMERS``. Timers that are restarted by packets alone
(LACP's current-while in a healthy port, BGP's hold timer, BIRD's scan) leave no event, so their phase is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hpn.testbed.entries import Registry
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.spec import LACP_PERIOD_MS, FabricSpec
from hpn.testbed.lag.states import Mux, Rx
from hpn.testbed.routing.retry import FIRST_S

_MS, _S = 10**6, 10**9
_RX, _MUX = frozenset(each.value for each in Rx), frozenset(each.value for each in Mux)
_MISSED = 3
"""Periods of LACP without a PDU until it is missed (802.1AX 6.4.4, short timeout)."""
_TENTHS = 10


@dataclass(frozen=True, slots=True)
class Timer:
    """Kind of timer. ``begins``: if an event starts it; ``ends``: if an event of the same node and subject ends it."""

    name: str
    begins: Callable[[Event], bool]
    ends: Callable[[Event], bool]
    length_ns: Callable[[FabricSpec], int]


@dataclass(frozen=True, slots=True)
class Running:
    """One timer that ran from ``since_ns`` until ``until_ns``, and would have expired at ``due_ns``."""

    name: str
    node: str
    subject: str
    since_ns: int
    due_ns: int
    until_ns: int

    def tenth(self, at_ns: int) -> int:
        """Return its phase at a time, in tenths of its length; 10 once expired."""
        return min(_TENTHS, _TENTHS * (at_ns - self.since_ns) // max(self.due_ns - self.since_ns, 1))

    @property
    def words(self) -> str:
        """Text: 'LACP wait-while of p0.s0.h0 r0p0'."""
        return f"{self.name} of {self.node} {self.subject}"


def _is(kind: EventKind, *what: str) -> Callable[[Event], bool]:
    return lambda event: event.kind is kind and event.what in what


def _silence_ns(spec: FabricSpec) -> int:
    """Return how long a neighbour of a routing session may be silent."""
    return spec.bgp.hold_s * _S if spec.bgp.bfd is None else spec.bgp.bfd.detect_ms * _MS


_RX_CHANGES, _MUX_CHANGES = _is(EventKind.LACP, *_RX), _is(EventKind.LACP, *_MUX)
_REACHED = _is(EventKind.PATH, "reachable")

TIMERS: Registry[Timer] = Registry(
    "timer",
    lambda timer: timer.name,
    (
        Timer(
            "LACP current-while",
            _is(EventKind.LACP, Rx.EXPIRED.value),
            _RX_CHANGES,
            lambda _spec: _MISSED * LACP_PERIOD_MS["fast"] * _MS,
        ),
        Timer(
            "LACP wait-while",
            _is(EventKind.LACP, Mux.WAITING.value),
            _MUX_CHANGES,
            lambda spec: spec.lacp.aggregate_wait_ms * _MS,
        ),
        Timer(
            "LACP wait-to-restore",
            _is(EventKind.LACP, Mux.ATTACHED_WTR.value),
            _MUX_CHANGES,
            lambda spec: spec.lacp.wait_to_restore_ms * _MS,
        ),
        Timer(
            "LACP period",
            _is(EventKind.LACP, Rx.CURRENT.value),
            _RX_CHANGES,
            lambda _spec: LACP_PERIOD_MS["fast"] * _MS,
        ),
        Timer(
            "first ARP retry",
            _is(EventKind.LAG, "active"),
            _is(EventKind.LAG, "active"),
            lambda _spec: int(FIRST_S * _S),
        ),
        Timer(
            "BGP connect delay",
            _is(EventKind.BGP, "down"),
            _is(EventKind.BGP, "established"),
            lambda spec: spec.bgp.connect_delay_s * _S,
        ),
        Timer(
            "silence limit",
            _is(EventKind.FAULT, "injected"),
            _is(EventKind.FAULT, "restore"),
            _silence_ns,
        ),
        Timer(
            "path refresh",
            _is(EventKind.PATH, "unreachable"),
            _REACHED,
            lambda spec: spec.path_control.refresh_ms * _MS,
        ),
        Timer("path hold", _is(EventKind.PATH, "held"), _REACHED, lambda spec: spec.path_control.hold_ms * _MS),
    ),
    of=Timer,
)
"""Timers whose start an event tells."""


def running(events: Iterable[Event], spec: FabricSpec, end_ns: int) -> Iterator[Running]:
    """Yield every timer that events start, ordered by its end or expiry; ``events`` in order, up to ``end_ns``."""
    lengths = {timer.name: timer.length_ns(spec) for timer in TIMERS.values()}
    open_: dict[tuple[str, str, str], int] = {}
    for event in events:
        for timer in TIMERS.values():
            key = (timer.name, event.node, event.subject)
            if key in open_ and timer.ends(event):
                yield _ran(key, open_.pop(key), lengths[timer.name], event.at_ns)
            if lengths[timer.name] and timer.begins(event):
                open_[key] = event.at_ns
    for key, since_ns in open_.items():
        yield _ran(key, since_ns, lengths[key[0]], end_ns)


def _ran(key: tuple[str, str, str], since_ns: int, length_ns: int, until_ns: int) -> Running:
    return Running(*key, since_ns, since_ns + length_ns, min(until_ns, since_ns + length_ns))
