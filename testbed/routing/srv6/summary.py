"""Sizes of a fabric's SRv6 plan, for ``hpn plan``, and what makes one impossible. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.wired.configs import configs_of
from hpn.testbed.routing.srv6.numbers import MOST_USIDS
from hpn.testbed.routing.srv6.plan import UsidPlan


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of a plan. ``most_routes``: of the fullest switch; ``most_usids``: no path has more."""

    switches: int
    nics: int
    adjacencies: int
    most_routes: int
    most_usids: int


def summary(plan: UsidPlan) -> Summary:
    """Return the counts of a plan."""
    fabric, adjacency = plan.fabric, plan.numbers.adjacency
    routes = Counter({node.name: 1 for node in fabric.switches})
    for link in fabric.links:
        for port in (link.lower, link.upper):
            if link.kind is not LinkKind.PEER and fabric.node(port.node).is_switch:
                routes[port.node] += 2 if port.label in adjacency else 1
    minimal = fabric.spec.srv6 is None or fabric.spec.srv6.routing == "minimal"
    most_usids = plan.longest() if minimal else MOST_USIDS
    return Summary(len(fabric.switches), len(fabric.nics), len(adjacency), max(routes.values(), default=0), most_usids)


def srv6_notes(fabric: Fabric) -> Iterator[str]:
    """Yield a line about the plan of a fabric that has SRv6."""
    if fabric.spec.srv6 is None:
        return
    found = summary(UsidPlan(fabric))
    uas = f" and {found.adjacencies} uAs, at ends of parallel links" if found.adjacencies else ""
    yield (
        f"SRv6: {found.switches + found.nics} uSIDs ({found.switches} of switches, {found.nics} of NICs)"
        f"{uas};"
        f" at most {found.most_routes} static routes in a switch and {found.most_usids} uSIDs in a carrier,"
        f" which holds {MOST_USIDS}"
    )


def srv6_problems(spec: FabricSpec) -> Iterator[Problem]:
    """Yield what makes SRv6 impossible. The specification has no other contradiction."""
    if spec.srv6 is None:
        return
    if spec.srv6.paths is not None and spec.srv6.routing != "k-shortest":
        text = f"srv6.paths has no meaning with routing {spec.srv6.routing}"
        yield ("srv6", "paths"), f"{text}; write routing: k-shortest"
        return
    own = next(iter(configs_of(spec.wiring)), None)
    if own is not None:
        text = f"srv6 needs tables that hpn writes, but {own} runs a configuration of its own"
        yield ("srv6",), f"{text}; leave srv6 out, or the configurations"
        return
    try:
        plan = UsidPlan(ARCHITECTURES[spec.architecture].build(spec))
    except InputError as error:
        # What has nothing to do with SRv6 is told by whoever builds the fabric.
        yield from ((("srv6",), text) for text in error.problems if text.startswith("srv6"))
        return
    if (most := plan.longest()) > MOST_USIDS:
        text = f"srv6: the longest path needs {most} uSIDs, and an IPv6 address carries {MOST_USIDS}"
        yield ("srv6",), f"{text}; take a network with shorter paths, or leave srv6 out"
