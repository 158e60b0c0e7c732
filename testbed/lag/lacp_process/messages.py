"""Messages between a lab and its LACP process: a line of JSON each, over a socket pair.

A line is a list: the kind of message, then its fields in order. Orders go to the process and are executed in order;
news come from it. ``life`` is a speaker's incarnation number: each start or stop increments it, and news of an
earlier one are discarded.
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
    """Order: create a speaker with this number, in the namespace whose descriptor both processes have."""

    speaker: int
    node: str
    namespace: int
    config: JsonRow  # fields of ``LacpConfig``
    ports: Sequence[JsonRow]  # fields of ``PortConfig``


@dataclass(frozen=True, slots=True)
class Start:
    """Order: BEGIN."""

    speaker: int
    life: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Order: stop permanently."""

    speaker: int


@dataclass(frozen=True, slots=True)
class Freeze:
    """Order: stop sending and receiving, and keep the state."""

    speaker: int


@dataclass(frozen=True, slots=True)
class Thaw:
    """Order: resume."""

    speaker: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Order: take every port out of its Aggregator, or put it back."""

    speaker: int
    refusing: bool


@dataclass(frozen=True, slots=True)
class Carrier:
    """Order: set the carrier state of a port."""

    speaker: int
    port: str
    up: bool


@dataclass(frozen=True, slots=True)
class Settle:
    """Order: answer with ``Settled`` when all previous orders are done."""

    number: int


@dataclass(frozen=True, slots=True)
class Active:
    """News: these ports collect and distribute."""

    speaker: int
    life: int
    ports: Sequence[str]


@dataclass(frozen=True, slots=True)
class Entered:
    """News: a port's machine entered a state, or its Partner changed, at a time of CLOCK_MONOTONIC."""

    speaker: int
    life: int
    at_ns: int
    port: str
    what: str
    detail: Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class Stands:
    """News: status of each port (``from_rows``)."""

    speaker: int
    life: int
    rows: Sequence[JsonRow]


@dataclass(frozen=True, slots=True)
class Settled:
    """News: the answer to ``Settle``."""

    number: int


@dataclass(frozen=True, slots=True)
class Failed:
    """News: the error that ends the process."""

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
    """Encode a message as a line, with its end."""
    fields = [getattr(message, name) for name in message.__slots__]
    return json.dumps([type(message).__name__, *fields], separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Decode a line without its end. ValueError, KeyError or TypeError when it is not a message."""
    kind, *fields = json.loads(line)
    return _KINDS[kind](*fields)


def make(speaker: int, node: str, namespace: int, config: LacpConfig, ports: Iterable[PortConfig]) -> Make:
    """Return the order to create a speaker."""
    return Make(speaker, node, namespace, astuple(config), [astuple(port) for port in ports])


def made(order: Make) -> tuple[LacpConfig, list[PortConfig]]:
    """Return the configuration in such an order."""
    return LacpConfig(*order.config), [PortConfig(*port) for port in order.ports]  # type: ignore[arg-type]  # from make


def as_rows(ports: Iterable[PortStatus]) -> list[JsonRow]:
    """Encode the status of ports for ``Stands``."""
    return [
        [port.name, port.enabled, _info(port.actor), _info(port.partner), port.rx, port.mux, port.selected]
        for port in ports
    ]


def from_rows(rows: Iterable[JsonRow]) -> tuple[PortStatus, ...]:
    """Decode the output of ``as_rows``."""
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
