"""Check that what an expectation names can be on a fabric: its parts, with traffic, and path control's events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hpn.failover.analysis.protocol_events import ProtocolEvent
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.metric import Shape
from hpn.scenarios.expect.scope import Scope
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.files.document import shorten
from hpn.traffic.flows.flow import FlowSpec

_OF_MOVES = frozenset({ProtocolEvent.MOVED, ProtocolEvent.STEERED, ProtocolEvent.RELEASED})


def may_have(scope: Scope, flow: FlowSpec) -> bool:
    """Return True if a flow can be in a scope; its plane is not known in advance."""
    return replace(scope, planes=()).has_flow(flow.src_nic, flow.dst_nic, None)


def scope_problem(
    fabric: Fabric, flows: Sequence[FlowSpec], has_faults: bool, expectation: Expectation
) -> tuple[str, str]:
    """Return the wrong key and the problem with its solution, or two empty texts.

    ``flows`` may be empty because they could not be computed.
    """
    scope, many = expectation.scope, expectation.metric.shape is Shape.PARTS
    moves = [each for each in expectation.events if each in _OF_MOVES]
    if moves and all(len(nic.links) < 2 for nic in fabric.nics):
        return "events", f"has {moves[0]}, but every NIC has one port and path control moves nothing; remove it"
    if moves and all(len(nic.links) > fabric.planes for nic in fabric.nics):
        why = "within a plane BGP moves traffic to another ToR, and path control moves nothing"
        return "events", f"has {moves[0]}, but {why}; remove it"
    for key, problem in _unknown(fabric, scope):
        return f"{key}s" if many else key, problem
    if scope.planes and not has_faults:
        return (
            "planes" if many else "plane",
            "needs a fault: a flow's plane is noted when one comes; remove it",
        )
    if not flows:
        return "", ""
    return _idle_part(flows, scope) if many else _idle(flows, scope)


def _idle_part(flows: Sequence[FlowSpec], scope: Scope) -> tuple[str, str]:
    """Return the first part that carries no traffic, each checked alone."""
    for key, part in _parts(scope):
        if not any(part.touches(flow.src_nic, flow.dst_nic, None) for flow in flows):
            return f"{key}s", f"names {part.words[0]}, which carries no traffic; write another"
    return "", ""


def _idle(flows: Sequence[FlowSpec], scope: Scope) -> tuple[str, str]:
    """Return the key that leaves no flow in the scope."""
    if any(may_have(scope, flow) for flow in flows):
        return "", ""
    if scope.peer and any(may_have(replace(scope, peer=""), flow) for flow in flows):
        stays = "stays within a segment" if scope.peer == "local" else "leaves its segment"
        return "peer", f"is {scope.peer}, but no such flow {stays}; see across_segments of the workload"
    key = "nic" if scope.nics else "rail"
    return key, f"leaves no flow: {' and '.join(scope.words)} carries no traffic; write another"


def _parts(scope: Scope) -> Iterator[tuple[str, Scope]]:
    """Yield every single part that concerns NICs."""
    yield from (("rail", Scope(rails=(rail,))) for rail in scope.rails)
    yield from (("nic", Scope(nics=(nic,))) for nic in scope.nics)
    yield from (("host", Scope(hosts=(host,))) for host in scope.hosts)


def _unknown(fabric: Fabric, scope: Scope) -> Iterator[tuple[str, str]]:
    for plane in scope.planes:
        if fabric.planes == 1:
            yield "plane", f"is {plane}, but this fabric has one plane; remove it, or take a topology of several"
        elif not 0 <= plane < fabric.planes:
            yield "plane", f"is {plane}, but this fabric has planes 0 to {fabric.planes - 1}; write one of them"
    rails = sorted({nic.rail for nic in fabric.nics})
    for rail in scope.rails:
        if rail not in rails:
            has = f"rails 0 to {rails[-1]}; write one of them" if rails[1:] else "only rail 0; write 0"
            yield "rail", f"is {rail}, but this fabric has {has}"
    for nic in scope.nics:
        if nic not in fabric.nic_by_name:
            yield "nic", f"is {shorten(nic)}; {did_you_mean(nic, list(fabric.nic_by_name)[:200], 'NICs are')}"
    hosts = [host.name for host in fabric.hosts]
    for host in scope.hosts:
        if host not in hosts:
            yield "host", f"is {shorten(host)}; {did_you_mean(host, hosts[:200], 'hosts are')}"
