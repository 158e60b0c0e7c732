"""Rules for combinations of values: each is valid alone, but impossible or meaningless together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.buffer_rules import buffer_problems
from hpn.testbed.fabric.marking import frame_bytes, marker_of, queue_bytes
from hpn.testbed.fabric.spec import QUEUE_AFFINITY, WIRED, FabricSpec
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.files.document import shorten
from hpn.testbed.lag.datapaths import AUTO, DATAPATHS, candidates
from hpn.testbed.routing.daemons import DAEMONS
from hpn.testbed.routing.srv6.summary import srv6_problems

_DEFAULTS = FabricSpec()


def contradictions(spec: FabricSpec) -> list[Problem]:
    """Return all conflicts between the values of ``spec``; empty when it can be built. The architecture must exist."""
    of_its_own = ARCHITECTURES[spec.architecture].contradictions(spec)
    later = (*_timers(spec), *_asn(spec), *_daemon(spec), *_lag(spec), *_nic(spec), *_ecn(spec), *buffer_problems(spec))
    found = [*_meaningless(spec), *_tiers(spec), *of_its_own, *later]
    return found or [*srv6_problems(spec)]


def _meaningless(spec: FabricSpec) -> Iterator[Problem]:
    """Yield keys that the architecture cannot honour and that differ from their defaults."""
    for key, way_out in ARCHITECTURES[spec.architecture].meaningless.items():
        where = tuple(key.split("."))
        if _value(spec, where) != _value(_DEFAULTS, where):
            yield where, f"{key} means nothing to {spec.architecture}: {way_out}"
    yield from _not_its_own(spec)
    yield from _no_cores(spec)


def _not_its_own(spec: FabricSpec) -> Iterator[Problem]:
    """Yield keys that only other architectures have and that differ from their defaults."""
    of: dict[str, list[str]] = {}
    for architecture in ARCHITECTURES.values():
        for key in architecture.own_keys:
            of.setdefault(key, []).append(architecture.name)
    for key, names in of.items():
        if spec.architecture not in names and getattr(spec, key) != getattr(_DEFAULTS, key):
            text = f"{key} means nothing to {spec.architecture}; leave it out"
            yield (key,), f"{text}, or write architecture: {' or '.join(names)}"


def _no_cores(spec: FabricSpec) -> Iterator[Problem]:
    """Yield keys about pods and Cores for an architecture without Cores, unless it rejects them itself."""
    architecture = ARCHITECTURES[spec.architecture]
    if architecture.cores:
        return
    pods = () if architecture.direct else ("pods",)
    for key in (*pods, "cores", "core_groups", *(() if spec.wiring else ("core_ports",))):
        given, only = getattr(spec, key), getattr(_DEFAULTS, key)
        if given != only and key not in architecture.meaningless:
            yield (key,), f"{key} is {given}, but {architecture.name} has no Cores to join pods; write {only}"


def _value(spec: FabricSpec, where: tuple[str, ...]) -> object:
    return reduce(getattr, where, spec)


def _tiers(spec: FabricSpec) -> Iterator[Problem]:
    if spec.wiring is not None:
        if spec.architecture != WIRED:
            yield ("wiring",), f"wiring means nothing to {spec.architecture}; write architecture: wired"
        return
    if spec.aggs == 0 and spec.segments > 1:
        yield ("aggs",), f"aggs is 0 but there are {spec.segments} segments to connect; write at least 1"
    if spec.aggs == 0 and spec.uplinks > 1:
        yield ("uplinks",), f"uplinks is {spec.uplinks} but aggs is 0; write at least 1 Agg, or leave uplinks out"
    multi_pod = ARCHITECTURES[spec.architecture].cores
    if spec.pods > 1 and spec.cores == 0 and multi_pod:
        yield ("cores",), f"cores is 0 but there are {spec.pods} pods to connect; write at least 1"
    if spec.cores > 0 and spec.aggs == 0 and spec.segments == 1:
        yield ("cores",), f"cores is {spec.cores} but aggs is 0, so nothing reaches them; write at least 1 Agg"
    if spec.core_ports != "auto" and spec.cores == 0 and multi_pod:
        yield ("core_ports",), f"core_ports is {spec.core_ports} but cores is 0; leave it out, or write cores: 2"
    groups = spec.core_groups
    if not multi_pod or groups == 1:
        return
    if spec.cores == 0:
        yield ("core_groups",), f"core_groups is {groups} but cores is 0; leave it out, or write cores: {groups}"
    for key, count in (("aggs", spec.aggs), ("cores", spec.cores)):
        if count % groups:
            least = -(-count // groups) * groups
            yield (key,), f"{key} is {count}, which {groups} core_groups cannot share; write {least}"


def _ecn(spec: FabricSpec) -> Iterator[Problem]:
    """Yield thresholds that the slowest switch port's queue never reaches, or that are within one frame."""
    marker = marker_of(spec)
    if marker is None:
        return
    rates = [spec.nic_port_rate, *([spec.uplink_rate] if spec.aggs else []), *([spec.core_rate] if spec.cores else [])]
    rates += [] if spec.wiring is None else [link.rate for link in spec.wiring.links if link.rate is not None]
    for field, problem in marker.problems(queue_bytes(spec, min(rates) // spec.scale), frame_bytes(spec)):
        yield ("ecn", field), f"ecn.{field}: {problem}"


def _timers(spec: FabricSpec) -> Iterator[Problem]:
    bgp = spec.bgp
    if bgp.keepalive_s * 3 > bgp.hold_s:
        text = f"bgp.keepalive_s is {bgp.keepalive_s}, more than a third of hold_s; write {bgp.hold_s // 3}"
        yield ("bgp", "keepalive_s"), text + " or less (RFC 4271 section 4.4)"
    if bgp.error_wait_min_s > bgp.error_wait_max_s:
        text = f"bgp.error_wait_min_s is above error_wait_max_s; write {bgp.error_wait_max_s} or less"
        yield ("bgp", "error_wait_min_s"), text
    if bgp.bfd is not None and bgp.bfd.detect_ms >= bgp.hold_s * 1000:
        text = f"bgp.bfd needs {bgp.bfd.detect_ms} ms to find what BGP finds in hold_s, {bgp.hold_s} s; write less"
        yield ("bgp", "bfd"), text


def _asn(spec: FabricSpec) -> Iterator[Problem]:
    """Yield ASNs per switch below preset Cores, and per tier where there is one tier.

    Preset Cores also use routes that they do not announce, so packets would loop.
    """
    if spec.bgp.valleys and ARCHITECTURES[spec.architecture].presets_ports(spec):
        text = "bgp.asn per-switch allows valleys, in which the Cores' preset ports send packets round in circles"
        yield ("bgp", "asn"), f"{text}; write core_ports: hash, or asn: per-tier"
    if ARCHITECTURES[spec.architecture].direct and not spec.bgp.valleys:
        text = "bgp.asn is per-tier, but all switches are of one tier and would refuse each other's routes"
        yield ("bgp", "asn"), f"{text}; write bgp: {{asn: per-switch}}"


def _daemon(spec: FabricSpec) -> Iterable[Problem]:
    name = spec.bgp.daemon
    if name in DAEMONS:
        return DAEMONS[name].contradictions(spec)
    return [(("bgp", "daemon"), f"bgp.daemon is {shorten(name)}; {did_you_mean(name, DAEMONS, 'write one of')}")]


def _nic(spec: FabricSpec) -> Iterator[Problem]:
    """Yield what contradicts how NICs select a port."""
    nic, policy = spec.nic, spec.path_control.chosen
    if nic.rebind_least_ms > nic.rebind_most_ms:
        yield (
            ("nic", "rebind_least_ms"),
            f"nic.rebind_least_ms is above rebind_most_ms; write {nic.rebind_most_ms} or less",
        )
    if nic.affinity != "in-turn" and not nic.binds:
        text = f"nic.affinity is {nic.affinity}, but the NICs hash: no queue pair is bound to a port"
        yield ("nic", "affinity"), f"{text}; write port_selection: {QUEUE_AFFINITY}"
    if nic.binds and spec.ports_of_nic == 1:
        text = f"nic.port_selection is {QUEUE_AFFINITY}, but a NIC has one port: there is nothing to select"
        yield ("nic", "port_selection"), f"{text}; leave it out"
    if policy.binds and not nic.binds:
        text = f"path_control.policy is {policy.name}, but the NICs hash: no queue pair is bound to a port"
        yield ("path_control", "policy"), f"{text}; write nic: {{port_selection: {QUEUE_AFFINITY}}}"
    if policy.steers and nic.binds:
        text = f"path_control.policy is {policy.name}, but packets of bound queue pairs pass the host's LAG by"
        yield ("path_control", "policy"), f"{text}; write policy: rebind"
    if spec.soft_roce and nic.binds:
        text = f"soft_roce is yes, but Soft-RoCE's queue pairs have no {QUEUE_AFFINITY}: the LAG hashes them"
        yield ("nic", "port_selection"), f"{text}; write port_selection: hash"


def _lag(spec: FabricSpec) -> Iterator[Problem]:
    """Yield values that a datapath which the lab may get cannot honour."""
    kinds = candidates(spec.lag)
    if not kinds:
        yield ("lag",), f"lag is {shorten(spec.lag)}; {did_you_mean(spec.lag, (AUTO, *DATAPATHS), 'write one of')}"
    for kind in kinds:
        yield from kind.contradictions(spec)
