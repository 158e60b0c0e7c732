"""Any fabric as the network of a month's job: hashes and routes of each queue pair. Pure; imports numpy."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property

import numpy as np

from hpn.scenarios.model.month.failures import Failed, Kind
from hpn.scenarios.model.path_assignment import PathAssignment
from hpn.scenarios.model.router import Lag, ModelRouter, network_refusals
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, LinkKind, Nic
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.flows.patterns import NewFlows, check_number
from hpn.traffic.fluid.forwarding import Forwarding
from hpn.traffic.fluid.links import Links
from hpn.traffic.fluid.solve import max_min

_CHOICE = "disjoint"  # of source ports, as HPN's hosts do
_EVENLY = 1.0  # rate of each flow when source ports are chosen, packets/s


class FabricNetwork:
    """A job on all hosts of a fabric but spares. Source ports are chosen without failures; path control moves them."""

    def __init__(self, fabric: Fabric, queue_pairs: int) -> None:
        """Choose source ports.

        InputError for a fabric that the model does not support, for too few hosts, and where some have no path.
        """
        if why := next(_refusals(fabric), ""):
            raise InputError(f"a month cannot be spent on {fabric.spec.name}: {why}")
        self._fabric, self._lag, self._queue_pairs = fabric, Lag(fabric), queue_pairs
        self._nics = fabric.active_nics
        self._access = [link.name for nic in self._nics for link in nic.links]
        self._tors = list(dict.fromkeys(link.upper.node for nic in self._nics for link in nic.links))
        self._capacity = Links.of(fabric).capacity
        self._flows = self._chosen()
        if not self.slowest_bps(frozenset()):
            raise InputError(f"on {fabric.spec.name} some NICs of a rail have no path to each other; join them")

    @property
    def gpus(self) -> int:
        """See ``JobNetwork``."""
        return len(self._nics)

    @property
    def links(self) -> int:
        """See ``JobNetwork``."""
        return len(self._access)

    @property
    def tors(self) -> int:
        """See ``JobNetwork``."""
        return len(self._tors)

    @property
    def stacked(self) -> bool:
        """See ``JobNetwork``."""
        return False

    @property
    def nic_bps(self) -> float:
        """See ``JobNetwork``; emulated, of the slowest NIC."""
        return float(min(sum(link.rate_bps for link in nic.links) for nic in self._nics))

    @property
    def isolated_planes(self) -> bool:
        """See ``JobNetwork``."""
        return self._fabric.planes > 1

    @cached_property
    def has_another_way(self) -> bool:
        """See ``JobNetwork``."""
        controlled = self._fabric.spec.path_control.chosen.agent is not None
        return all(len(nic.links) > 1 for nic in self._nics) and (not self.isolated_planes or controlled)

    def link(self, of_job: int) -> int:
        """See ``JobNetwork``."""
        return of_job

    def segment(self, link: int) -> Hashable:
        """See ``JobNetwork``."""
        host = self._fabric.node(self._fabric.nic_of_link(self._access[link]).host)
        return host.pod, host.segment

    def some_links(self) -> Sequence[int]:
        """See ``JobNetwork``."""
        first = [
            at for at, name in enumerate(self._access) if self._fabric.nic_of_link(name).rail == self._nics[0].rail
        ]
        return [first[at] for at in np.linspace(0, len(first) - 1, 3).astype(int)]

    def slowest_bps(self, broken: frozenset[Failed]) -> float:
        """See ``JobNetwork``."""
        down = {link for kind, number in broken for link in self._links_of(kind, number)}
        found = PathAssignment(self._fabric, self._lag, self._flows, known=True).settle(down)
        if not (found.arrives.all() and found.answered.all()):
            return 0.0
        return float(max_min(found.links, self._capacity).min()) * self._queue_pairs

    def _links_of(self, kind: Kind, number: int) -> Iterator[str]:
        if kind is Kind.LINK:
            yield self._access[number]
        else:
            yield from (link.name for link in self._fabric.links_of(self._tors[number]))

    def _chosen(self) -> Sequence[FlowSpec]:
        pairs = list(_rings(self._nics))
        if not pairs:
            raise InputError(f"{self._fabric.spec.name} has no two hosts for a job; add hosts")
        check_number(len(pairs) * self._queue_pairs)
        new = NewFlows(path_mtu=4096, ib_timeout=20, retry_count=7)
        flows = [new.between(src, dst, k, _EVENLY) for src, dst in pairs for k in range(self._queue_pairs)]
        router = ModelRouter(self._fabric, self._lag, Forwarding(self._fabric))
        router.look_up_all(flows)
        return CHOICES[_CHOICE].choose(flows, router, (), self._fabric.spec.seed).flows


def _rings(nics: Sequence[Nic]) -> Iterator[tuple[Nic, Nic]]:
    """Yield on each rail every NIC with the next host's, and the last with the first."""
    rails: dict[int, list[Nic]] = {}
    for nic in nics:
        rails.setdefault(nic.rail, []).append(nic)
    for members in rails.values():
        if len(members) > 1:
            yield from zip(members, [*members[1:], members[0]], strict=True)


def _refusals(fabric: Fabric) -> Iterator[str]:
    yield from network_refusals(fabric.spec)
    if any(link.kind is LinkKind.PEER for link in fabric.links):
        yield "stacks are known by arithmetic alone; write hpn month stacked-dual-tor"
