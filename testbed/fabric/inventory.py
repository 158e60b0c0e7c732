"""The inventory of a fabric: its bill of materials, and a check of the switches' port budgets. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Node, Role
from hpn.testbed.fabric.spec import CorePorts, FabricSpec

MAX_ACCESS_LINKS = 2_000_000


@dataclass(frozen=True, slots=True)
class LinkCount:
    """``count`` links of one tier at one real (unscaled) rate; spare hosts' links are counted separately."""

    kind: LinkKind
    spare: bool
    count: int
    rate_bps: int


@dataclass(frozen=True, slots=True)
class SwitchBudget:
    """Ports of the fullest switch of a role, in real (unscaled) rates. ``down_bps`` leaves spare hosts out.

    Mesh links count as up at both ends, so that ``down`` is what has hosts below.
    """

    role: Role
    switches: int
    down_ports: int
    spare_ports: int
    up_ports: int
    down_bps: int
    spare_bps: int
    up_bps: int
    capacity_bps: int
    peer_ports: int = 0
    peer_bps: int = 0

    @property
    def used_bps(self) -> int:
        """Sum of all port rates, spares and peer links included."""
        return self.down_bps + self.spare_bps + self.up_bps + self.peer_bps

    @property
    def oversubscription(self) -> float | None:
        """Downlink over uplink capacity; None at the top tier."""
        return self.down_bps / self.up_bps if self.up_bps else None


@dataclass(frozen=True, slots=True)
class Inventory:
    """Counts of a fabric. ``gpus`` = NICs of active hosts (one GPU per rail)."""

    architecture: str
    planes: int
    gpus: int
    spare_gpus: int
    hosts: int
    spare_hosts: int
    tors: int
    aggs: int
    cores: int
    core_ports: CorePorts | None  # None without Cores
    links: tuple[LinkCount, ...]
    budgets: tuple[SwitchBudget, ...]
    scale: int

    def link_count(self, kind: LinkKind) -> int:
        """Return the number of links of one tier, without those of spare hosts."""
        return sum(c.count for c in self.links if c.kind is kind and not c.spare)


def inventory(fabric: Fabric) -> Inventory:
    """Count everything in ``fabric``."""
    spare_hosts = {node.name for node in fabric.nodes if node.spare}
    roles = Counter(node.role for node in fabric.nodes)
    spare_nics = sum(nic.host in spare_hosts for nic in fabric.nics)
    links = Counter(
        (link.kind, link.lower.node in spare_hosts, link.rate_bps * fabric.spec.scale) for link in fabric.links
    )
    return Inventory(
        architecture=fabric.spec.architecture,
        planes=fabric.planes,
        gpus=len(fabric.nics) - spare_nics,
        spare_gpus=spare_nics,
        hosts=roles[Role.HOST] - len(spare_hosts),
        spare_hosts=len(spare_hosts),
        tors=roles[Role.TOR],
        aggs=roles[Role.AGG],
        cores=roles[Role.CORE],
        core_ports=fabric.core_ports if roles[Role.CORE] else None,
        links=tuple(LinkCount(kind, spare, n, rate) for (kind, spare, rate), n in sorted(links.items())),
        budgets=tuple(budgets(fabric, spare_hosts)),
        scale=fabric.spec.scale,
    )


def budgets(fabric: Fabric, spare_hosts: set[str]) -> list[SwitchBudget]:
    """Return the budget of the fullest switch of each role present, from ToR to Core."""
    fullest: dict[Role, SwitchBudget] = {}
    counts = Counter(node.role for node in fabric.nodes)
    for node in fabric.switches:
        budget = _budget(fabric, node, counts[node.role], spare_hosts)
        best = fullest.get(node.role)
        if best is None or budget.used_bps > best.used_bps:
            fullest[node.role] = budget
    return [fullest[role] for role in (Role.TOR, Role.AGG, Role.CORE) if role in fullest]


def check_budgets(fabric: Fabric) -> None:
    """Raise InputError, naming the number to change, if a switch carries more than ``spec.switch_capacity``."""
    spec = fabric.spec
    spare_hosts = {node.name for node in fabric.nodes if node.spare}
    meshed = any(link.kind is LinkKind.MESH for link in fabric.links)
    problems = []
    for budget in budgets(fabric, spare_hosts):
        if budget.used_bps > spec.switch_capacity:
            ports = f"{budget.down_ports} down, {budget.spare_ports} spare, {budget.up_ports} up"
            ports += f", {budget.peer_ports} peer" if budget.peer_ports else ""
            problems.append(
                f"a {budget.role.value} needs {_tera(budget.used_bps)} of ports ({ports})"
                f" but a switch has {_tera(spec.switch_capacity)}; {_way_out(budget, spec, meshed=meshed)}"
            )
    if problems:
        raise InputError(problems)


def check_size(spec: FabricSpec) -> None:
    """Raise InputError if the fabric would be absurdly large, before anything is built."""
    links = spec.pods * spec.segments * (spec.hosts + spec.spare_hosts) * spec.rails * 2
    if links > MAX_ACCESS_LINKS:
        raise InputError(
            f"{links:,} access links is more than {MAX_ACCESS_LINKS:,}; lower pods, segments, hosts or rails"
        )


def _budget(fabric: Fabric, node: Node, switches: int, spare_hosts: set[str]) -> SwitchBudget:
    down: list[Link] = []
    spare: list[Link] = []
    up: list[Link] = []
    peer: list[Link] = []
    for link in fabric.links_of(node.name):
        if link.kind is LinkKind.PEER:
            peer.append(link)
        elif link.lower.node == node.name or link.kind is LinkKind.MESH:
            up.append(link)
        else:
            (spare if link.lower.node in spare_hosts else down).append(link)
    scale = fabric.spec.scale
    rates = [sum(link.rate_bps for link in group) * scale for group in (down, spare, up, peer)]
    down_bps, spare_bps, up_bps, peer_bps = rates
    return SwitchBudget(
        role=node.role,
        switches=switches,
        down_ports=len(down),
        spare_ports=len(spare),
        up_ports=len(up),
        down_bps=down_bps,
        spare_bps=spare_bps,
        up_bps=up_bps,
        capacity_bps=fabric.spec.switch_capacity,
        peer_ports=len(peer),
        peer_bps=peer_bps,
    )


def _way_out(budget: SwitchBudget, spec: FabricSpec, *, meshed: bool) -> str:
    """Name the number whose reduction makes the switch fit, with the largest value that does."""
    if spec.wiring is not None:
        return f"raise switch_capacity to {_tera(budget.used_bps)}, or take links away"
    over = budget.used_bps - spec.switch_capacity
    if budget.role is Role.TOR:
        hosts = spec.hosts + spec.spare_hosts
        per_host = (budget.down_bps + budget.spare_bps) // hosts
        fit = hosts - -(-over // per_host)
        if fit > 0:
            return f"lower hosts + spare_hosts from {hosts} to {fit}, or {'uplinks' if meshed else 'aggs'}"
        if meshed:
            return f"raise switch_capacity to {_tera(budget.used_bps)}, or lower uplink_rate"
        return f"lower aggs from {spec.aggs}" + (f" or uplinks from {spec.uplinks}" if spec.uplinks > 1 else "")
    if budget.role is Role.AGG:
        fit = (spec.switch_capacity - budget.up_bps) // spec.uplink_rate
        per_segment = max(1, budget.down_ports // spec.segments)
        return f"lower segments from {spec.segments} to {max(0, fit // per_segment)}, or rails, or cores"
    return f"lower pods from {spec.pods} or aggs from {spec.aggs}, or raise core_groups from {spec.core_groups}"


def _tera(bps: int) -> str:
    return f"{bps / 1e12:g}T"
