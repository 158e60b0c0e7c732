"""Checks across the sections of a drill file, such as faults that exist and fit in time, expectations that apply.

Each check is one function that notes its mistakes. Parts that could not be read are None; checks that need them are
skipped.
"""

from __future__ import annotations

from itertools import chain

from hpn.scenarios.drill.capture import problem as capture_problem
from hpn.scenarios.drill.checks_expectations import (
    edge_problems,
    known_fault_problems,
    resolution_problems,
    sample_problems,
    scope_problems,
    traffic_problems,
)
from hpn.scenarios.drill.checks_faults import (
    id_problems,
    overlap_problems,
    step_problems,
    target_problems,
    timing_problems,
)
from hpn.scenarios.drill.checks_flows import busy_problems, flow_problems
from hpn.scenarios.drill.checks_lacp import lacp_problems
from hpn.scenarios.drill.checks_soft_roce import port_problem
from hpn.scenarios.drill.checks_transfers import expectation_problems, workload_problems
from hpn.scenarios.drill.fault_schedule import course
from hpn.scenarios.drill.job import JOB_HEADERS
from hpn.scenarios.drill.locate_section import Act
from hpn.scenarios.drill.locate_section import problems as locating_problems
from hpn.scenarios.drill.model import PATH_MTUS
from hpn.scenarios.drill.parts import Found, Parts
from hpn.scenarios.drill.workload import mtu_needed
from hpn.testbed.files.check import Mistakes, dotted
from hpn.testbed.routing.srv6.packet import CARRIED_BYTES


def check_drill(mistakes: Mistakes, parts: Parts) -> None:
    """Note every mistake across sections."""
    for check in _CHECKS:
        for where, text in check(parts):
            written = where[0] in mistakes.document.data  # an omitted section has valid defaults, so blame the fabric
            mistakes.add(where if written else ("topology",), text)
    if not mistakes and parts.fabric is not None and parts.flows and parts.faults:
        steps = course(parts.fabric, [planned for planned, _ in parts.faults], parts.flows)
        for where, text in chain(
            busy_problems(steps, parts.faults), flow_problems(steps, parts.expectations, parts.flows)
        ):
            mistakes.add(where, text)


def _captures(parts: Parts) -> Found:
    if parts.fabric is not None and parts.captures is not None and parts.faults_complete:
        key, text = capture_problem(parts.captures, parts.fabric, [planned for planned, _ in parts.faults])
        if text:
            where = ("capture", key) if key else ("capture",)
            yield where, f"{dotted(where)}{text}"


def _locating(parts: Parts) -> Found:
    locating, fabric = parts.locating, parts.fabric
    for expectation, where in parts.expectations:
        if expectation.metric.needs.drains and (locating is None or locating.act is Act.NOTHING):
            what = "is about links taken out: write 'locate: {act: drain}' or 'locate: {act: rebind}', or remove it"
            yield where, f"{expectation.metric.key} {what}"
        if expectation.metric.needs.paths and parts.job is not None and not parts.job.has_paths:
            what = "needs the path of each queue pair, and their packets take many; remove it, spray or multipath"
            yield where, f"{expectation.metric.key} {what}"
    if locating is not None and fabric is not None:
        streams = parts.workload is not None or not parts.client
        for key, text in locating_problems(locating, fabric, parts.job, streams=streams):
            place = ("locate", key) if key else ("locate",)
            yield place, f"{dotted(place)}{text}"


def _path_mtu(parts: Parts) -> Found:
    section, traffic = ("workload", parts.workload) if parts.job is None else ("job", parts.job)
    if parts.fabric is None or traffic is None:
        return
    more = 0 if parts.job is None else JOB_HEADERS  # extra headers compared with a stream's packet of that path MTU
    if parts.job is not None and parts.job.multipath is not None and parts.fabric.spec.srv6 is not None:
        more += CARRIED_BYTES
    needed = mtu_needed(traffic.path_mtu) + more
    if parts.fabric.spec.mtu < needed:
        smaller = [size for size in PATH_MTUS if mtu_needed(size) + more <= parts.fabric.spec.mtu]
        way_out = f"write path_mtu: {smaller[-1]} or mtu: {needed}" if smaller else f"write mtu: {needed} or more"
        text = f"{section}.path_mtu {traffic.path_mtu} needs an mtu of {needed}"
        yield (section, "path_mtu"), f"{text}, the topology has {parts.fabric.spec.mtu}; {way_out}"


def _soft_roce(parts: Parts) -> Found:
    if parts.soft_roce:
        yield from port_problem(job=parts.job is not None, streams=parts.workload is not None, client=parts.client)


def _spares(parts: Parts) -> Found:
    """Yield a mistake if the job needs more spare hosts than the fabric has."""
    policy = parts.job.restart if parts.job is not None else None
    if parts.fabric is None or policy is None:
        return
    there = sum(host.spare for host in parts.fabric.hosts)
    if policy.spares > there:
        text = f"job.restart.spares is {policy.spares} and the fabric has {there} spare hosts"
        way_out = "write fewer, or raise spare_hosts in the topology" if there else "write spare_hosts: 1 in it"
        yield ("job", "restart", "spares"), f"{text}; {way_out}"


def _transfers(parts: Parts) -> Found:
    if parts.workload is None or not parts.flows:
        return
    yield from workload_problems(parts.workload, parts.timeline, parts.flows)
    if parts.timeline is not None:
        faults = [planned for planned, _ in parts.faults]
        yield from expectation_problems(parts.expectations, parts.flows, faults, parts.timeline.end_ns)


_CHECKS = (
    target_problems,
    id_problems,
    timing_problems,
    step_problems,
    overlap_problems,
    _path_mtu,
    _soft_roce,
    traffic_problems,
    _spares,
    known_fault_problems,
    edge_problems,
    lacp_problems,
    resolution_problems,
    scope_problems,
    sample_problems,
    _captures,
    _locating,
    _transfers,
)
