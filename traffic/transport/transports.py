"""Transports of a job's queue pairs, by their name in a drill: their settings, and what they do not go with. PURE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hpn.testbed.entries import Registry
from hpn.traffic.jobengine.port_use import PORT_USES
from hpn.traffic.multipath.settings import MOST_WINDOW, Multipath
from hpn.traffic.transport.work import Recovery


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A key of a job that a transport does not go with: if its value is ``wrong``; ``why`` ends with the way out."""

    name: str
    wrong: Callable[[object], bool]
    why: str
    shown: bool = True  # the message shows the value


@dataclass(frozen=True, slots=True)
class TransportKind:
    """A transport; ``settings``: class of its settings, None if it has none. ``recovery``: how it makes up for loss,
    None if the drill says so."""

    name: str
    summary: str
    settings: type[Multipath] | None
    recovery: Recovery | None
    excludes: tuple[Exclusion, ...] = ()


def _given(value: object) -> bool:
    return value not in (None, False)


RC = TransportKind("rc", "a reliable connection as in RoCEv2: one path at a time", None, None)
MULTIPATH = TransportKind(
    "multipath",
    "each packet takes another path, and the sender denies bad ones",
    Multipath,
    Recovery.SELECTIVE_REPEAT,
    (
        Exclusion(
            "recovery",
            lambda value: value == Recovery.GO_BACK_N,
            "would send again whatever overtakes a packet; leave recovery out",
        ),
        Exclusion("spray", _given, "has nothing left to spread; leave spray out", shown=False),
        Exclusion("rehash", _given, "finds no path that a queue pair could leave; leave rehash out", shown=False),
        Exclusion("port_recovery", _given, "has no failed port to return to; leave port_recovery out", shown=False),
        Exclusion(
            "port_use",
            lambda value: value in PORT_USES and PORT_USES[str(value)].standby,
            "has no standby: each queue pair uses all ports; leave port_use out",
        ),
        Exclusion(
            "window",
            lambda value: isinstance(value, int) and value > MOST_WINDOW,
            f"is more than an acknowledgement has bits for; write {MOST_WINDOW} or less",
        ),
    ),
)

TRANSPORTS: Registry[TransportKind] = Registry("transport", lambda kind: kind.name, (RC, MULTIPATH), of=TransportKind)
