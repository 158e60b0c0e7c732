"""What a lab and the process that speaks its LACP tell each other: a line of JSON each, over a socket pair.

A line is a list: the kind of message, then its fields in order. Orders go to the process and are carried out in order;
news come from it. ``life`` counts how often a speaker was started or stopped: news of an earlier one are void.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

from hpn.testbed.lag.config import LacpConfig, PortConfig
from hpn.testbed.lag.lacpdu import PortInfo, PortState
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.states import Mux, Rx, Selected

JsonRow = Sequence[object]


@dataclass(frozen=True, slots=True)
class Make:
    """Order: there is a speaker of this number, in the namespace whose descriptor both processes have."""

    speaker: int
    node: str
    namespace: int
    config: JsonRow  # as ``LacpConfig`` has them
    ports: Sequence[JsonRow]  # as ``PortConfig`` has them


@dataclass(frozen=True, slots=True)
class Start:
    """Order: BEGIN."""

    speaker: int
    life: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Order: fall silent for good."""

    speaker: int


@dataclass(frozen=True, slots=True)
class Freeze:
    """Order: fall silent, forget nothing."""

    speaker: int


@dataclass(frozen=True, slots=True)
class Thaw:
    """Order: run on."""

    speaker: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Order: take every port out of its Aggregator, or back."""

    speaker: int
    refusing: bool


@dataclass(frozen=True, slots=True)
class Carrier:
    """Order: the carrier of a port is so."""

    speaker: int
    port: str
    up: bool


@dataclass(frozen=True, slots=True)
class Settle:
    """Order: answer with ``Settled`` when all before it is done."""

    number: int


@dataclass(frozen=True, slots=True)
class Active:
    """News: these ports collect and distribute."""

    speaker: int
    life: int
    ports: Sequence[str]


@dataclass(frozen=True, slots=True)
class Entered:
    """News: a machine of a port entered a state, or its Partner changed, at a time of CLOCK_MONOTONIC."""

    speaker: int
    life: int
    at_ns: int
    port: str
    what: str
    detail: Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class Stands:
    """News: how each port stands (``from_rows``)."""

    speaker: int
    life: int
    rows: Sequence[JsonRow]


@dataclass(frozen=True, slots=True)
class Settled:
    """News: the answer to ``Settle``."""

    number: int


@dataclass(frozen=True, slots=True)
class Failed:
    """News: what the process is about to die of."""

    words: str


Order = Make | Start | Stop | Freeze | Thaw | Refuse | Carrier | Settle
News = Active | Entered | Stands | Settled | Failed
Message = Order | News
_KINDS: Mapping[str, type[Message]] = {
    kind.__name__: kind
    for kind in (
        Make, Start, Stop, Freeze, Thaw, Refuse, Carrier, Settle, Active, Entered, Stands, Settled, Failed,
    )
}  # fmt: skip


def encode(message: Message) -> bytes:
    """The line of a message, with its end."""
    fields = [getattr(message, name) for name in message.__slots__]
    return json.dumps([type(message).__name__, *fields], separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message of a line, without its end. ValueError, KeyError or TypeError when it is none."""
    kind, *fields = json.loads(line)
    return _KINDS[kind](*fields)


def make(speaker: int, node: str, namespace: int, config: LacpConfig, ports: Iterable[PortConfig]) -> Make:
    """The order to make a speaker."""
    return Make(speaker, node, namespace, astuple(config), [astuple(port) for port in ports])


def made(order: Make) -> tuple[LacpConfig, list[PortConfig]]:
    """What such an order asks for."""
    return LacpConfig(*order.config), [PortConfig(*port) for port in order.ports]  # type: ignore[arg-type]  # from make


def as_rows(ports: Iterable[PortStatus]) -> list[JsonRow]:
    """How ports stand, for ``Stands``."""
    return [
        [port.name, port.enabled, _info(port.actor), _info(port.partner), port.rx, port.mux, port.selected]
        for port in ports
    ]


def from_rows(rows: Iterable[JsonRow]) -> tuple[PortStatus, ...]:
    """What ``as_rows`` has written."""
    return tuple(map(_from_row, rows))


def _from_row(row: JsonRow) -> PortStatus:
    name, enabled, actor, partner, rx, mux, selected = row
    ends = _from_info(actor), _from_info(partner)
    return PortStatus(str(name), bool(enabled), *ends, Rx(str(rx)), Mux(str(mux)), Selected(str(selected)))


def _info(info: PortInfo) -> JsonRow:
    return [info.system_priority, info.system, info.key, info.port_priority, info.port, int(info.state)]


def _from_info(row: object) -> PortInfo:
    if not isinstance(row, list):
        raise TypeError(f"no parameters of a port: {row!r}")
    priority, system, key, port_priority, port, state = row
    return PortInfo(priority, system, key, port_priority, port, PortState(state))
