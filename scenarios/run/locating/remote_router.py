"""Packet paths on a lab that another process supervises, asked over its control socket.

Changes when the supervisor answers for paths in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.lab.service import control
from hpn.traffic.flows.flow import SPORT_MAX, SPORT_MIN, FlowSpec

_AT_ONCE = 16
"""Source ports asked for together: a search tries one after the other."""

_Asked = tuple[str, str, int, int | None]


@dataclass(frozen=True, slots=True)
class _Answers:
    at_ns: int
    paths: list[tuple[int | None, tuple[str, ...], str | None]]


_ANSWERS = TypeAdapter(_Answers)


class RemoteRouter:
    """Implementation of ``traffic.flows.paths.Router`` by a lab's supervisor, on its control socket."""

    def __init__(self, fabric: Fabric, socket: Path) -> None:
        self._fabric = fabric
        self._socket = socket
        self._said: dict[_Asked, tuple[int | None, tuple[str, ...]]] = {}

    def ports(self, nic: str) -> int:
        """Return the number of member ports of a NIC's LAG."""
        return len(self._fabric.nic(nic).links)

    def port_for(self, nic: str, dst_ip: str, sport: int, _dport: int) -> int:
        """Return the index of the member port that the LAG picks. MachineError while it has no active port."""
        port, _ = self._found(nic, self._fabric.nic_by_ip[dst_ip].name, sport, None)
        if port is None:
            raise MachineError(f"{nic}: no active port in its LAG; hpn inspect lacp")
        return port

    def links(self, src_nic: str, dst_nic: str, sport: int, bound: int | None = None) -> Sequence[str]:
        """Return the names of the links on the path, as far as it leads."""
        return self._found(src_nic, dst_nic, sport, bound)[1]

    def rate_bps(self, link: str) -> int:
        """Return the emulated rate of a link in bit/s."""
        return self._fabric.link(link).rate_bps

    def paths(self, flows: Iterable[FlowSpec]) -> tuple[int, Mapping[int, Sequence[str]]]:
        """Return the time, and the links of each flow's path then; none if its packets do not arrive."""
        asked = list(flows)
        found = self._answers([(flow.src_nic, flow.dst_nic, flow.sport, flow.port) for flow in asked])
        paths = zip(asked, found.paths, strict=True)
        return found.at_ns, {flow.id: () if dropped else links for flow, (_, links, dropped) in paths}

    def suspect(self, suspects: Mapping[str, str]) -> None:
        """Tell the supervisor which parts are accused now, and of what."""
        control.call(self._socket, "suspect", suspects=dict(suspects))

    def _found(self, src: str, dst: str, sport: int, bound: int | None) -> tuple[int | None, tuple[str, ...]]:
        wanted = (src, dst, sport, bound)
        if wanted not in self._said:
            width = SPORT_MAX - SPORT_MIN + 1
            sports = [SPORT_MIN + (sport - SPORT_MIN + step) % width for step in range(_AT_ONCE)]
            asked: list[_Asked] = [(src, dst, each, bound) for each in sports]
            answers = zip(asked, self._answers(asked).paths, strict=True)
            self._said |= {each: (port, links) for each, (port, links, _) in answers}
        return self._said[wanted]

    def _answers(self, asked: Sequence[_Asked]) -> _Answers:
        told = control.call(self._socket, "paths", flows=[list(each) for each in asked])
        try:
            return _ANSWERS.validate_python(told)
        except ValidationError as error:
            raise MachineError("the lab's supervisor is of another hpn version; hpn down, then hpn up") from error
