"""Computed paths of queue pairs: the LAG's hash, then the fabric's forwarding. PURE.

The interface is that of ``scenarios.run.lab_router``, so that source ports are chosen by the same code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.buffers import balances, lossless_priorities
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.wired.configs import configs_of
from hpn.testbed.lag.datapaths import candidates
from hpn.testbed.routing.daemons import DAEMONS
from hpn.testbed.routing.pathcontrol.host_agent import port_instead
from hpn.testbed.routing.pathcontrol.policies import DEFAULT, OFF
from hpn.traffic.flows.flow import ROCE_PORT, SPORT_MAX, SPORT_MIN, FlowSpec
from hpn.traffic.fluid.forwarding import Forwarding

_BLOCK = 24
"""Number of source ports looked up at once.

An array costs little more than one of them, and the neighbours are requested next.
"""
_Asked = tuple[str, str, int, int | None]
"""Source NIC, destination NIC, source port, and the port that the queue pair is bound to."""
_AT_ONCE = 2_000
"""Number of flows looked up in one array, which bounds its size."""


def unknown_paths(spec: FabricSpec) -> str:
    """Return why paths on such a fabric cannot be computed: its LAG datapath or daemon does not state its choice."""
    lag, daemon = candidates(spec.lag)[0], DAEMONS[spec.bgp.daemon]
    if lag.port_of is None:
        return f"the LAG datapath {lag.name} does not state its hash (LagKind.port_of)"
    if not daemon.sorts_next_hops:
        return f"the BGP daemon {daemon.name} does not state the order of its next hops (DaemonKind.sorts_next_hops)"
    if balances(spec):
        return "switches choose the next hop of each packet or flowlet (switch.balancing), so no flow has one path"
    return ""


def network_refusals(spec: FabricSpec) -> Iterator[str]:
    """Yield why the model does not support a fabric."""
    if why := unknown_paths(spec):
        yield why
    if configs := configs_of(spec.wiring):
        yield f"{next(iter(configs))} routes by a configuration of its own, and the model knows hpn's alone"
    if spec.switch is not None and lossless_priorities(spec.switch):
        yield "lossless switches stop senders, and others with them; the model has only rates"
    if spec.nic.binds:
        yield "the model's times were measured without the adapters that bind queue pairs (nic.port_selection)"
    if spec.path_control.chosen.name not in (DEFAULT, OFF):
        yield f"the path policy {spec.path_control.chosen.name} is not modelled, only {DEFAULT} and {OFF}"


class Lag:
    """LAG hash of the fabric's NICs: that of its datapath; with ``lag: auto`` that of Linux bonding (layer3+4)."""

    def __init__(self, fabric: Fabric) -> None:
        """Select the datapath. InputError as ``unknown_paths`` says."""
        kind, why = candidates(fabric.spec.lag)[0], unknown_paths(fabric.spec)
        if why or kind.port_of is None:
            raise InputError(why)
        self._fabric, self._port_of = fabric, kind.port_of
        self.name = kind.name

    def port(
        self, nic: Nic, dst_ip: str, sport: int, dport: int, active: Sequence[int], bound: int | None = None
    ) -> int:
        """Return the index of the member port among those in ``active``, which must not be empty.

        ``bound``: port that the adapter bound the queue pair to; it uses the next active one in its place.
        """
        if bound is not None:
            return port_instead(bound, range(len(nic.links)), active)
        if len(active) == 1:
            return active[0]
        return active[self._port_of(self._fabric, nic, dst_ip, sport, dport, len(active))]


class ModelRouter:
    """Implementation of ``traffic.flows.paths.Router`` on the healthy fabric."""

    def __init__(self, fabric: Fabric, lag: Lag, forwarding: Forwarding) -> None:
        self._fabric, self._lag, self._forwarding = fabric, lag, forwarding
        self._known: dict[_Asked, Sequence[str]] = {}
        self._names = [link.name for link in fabric.links]

    def ports(self, nic: str) -> int:
        """Return the number of member ports of a NIC's LAG."""
        return len(self._fabric.nic(nic).links)

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        """Return the index of the member port that the LAG picks."""
        source = self._fabric.nic(nic)
        return self._lag.port(source, dst_ip, sport, dport, range(len(source.links)))

    def links(self, src_nic: str, dst_nic: str, sport: int, bound: int | None = None) -> Sequence[str]:
        """Return the names of the links on the path."""
        key = (src_nic, dst_nic, sport, bound)
        if key not in self._known:
            self.look_up([key])
        return self._known[key]

    def rate_bps(self, link: str) -> int:
        """Return the emulated rate of a link in bit/s."""
        return self._fabric.link(link).rate_bps

    def look_up_all(self, flows: Sequence[FlowSpec]) -> None:
        """Look up the links of flows from their source ports, and from the following ones."""
        self.look_up([(flow.src_nic, flow.dst_nic, flow.sport, flow.port) for flow in flows])

    def look_up(self, wanted: Sequence[_Asked]) -> None:
        """Look up the links from NIC to NIC for these source ports and the following ones, many at a time."""
        for at in range(0, len(wanted), _AT_ONCE):
            these = wanted[at : at + _AT_ONCE]
            self._walk([(src, dst, each, bound) for src, dst, first, bound in these for each in _block(first)])

    def _walk(self, keys: Sequence[_Asked]) -> None:
        src, dst = [self._fabric.nic(key[0]) for key in keys], [self._fabric.nic(key[1]) for key in keys]
        ports = [
            self.port_for(key[0], to.ip, key[2], ROCE_PORT) if key[3] is None else key[3]
            for key, to in zip(keys, dst, strict=True)
        ]
        found = self._forwarding.walk(src, dst, ports, [key[2] for key in keys])
        names = self._names
        for key, links in zip(keys, found.links.tolist(), strict=True):
            self._known[key] = tuple(names[link // 2] for link in links if link >= 0)


def _block(first: int) -> Iterator[int]:
    """Return consecutive source ports in the order in which they are tried."""
    return (SPORT_MIN + (first - SPORT_MIN + step) % (SPORT_MAX - SPORT_MIN + 1) for step in range(_BLOCK))
