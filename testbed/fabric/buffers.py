"""Buffers of ports: meaning of ``switch:`` of a topology at one port, with headroom by formula. Pure.

**Headroom.** After a port decides to send XOFF there still arrive: the packet that crossed the threshold, what is on
the cable both ways and what the far MAC sends until it obeys (``react_ns`` at the link's rate), the frame that the far
port has begun, and the burst that its token bucket allows. A PFC frame itself waits for nothing here.

**Scale.** Bytes are not scaled; times are, with the rates: a cable's delay is ``scale`` times as long, so that as many
bytes are on their way as on the real cable (IEEE 802.1Q annex N has the same sum for real links).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hpn.testbed.fabric.balancing import BALANCERS
from hpn.testbed.fabric.marking import Marker, burst_bytes, frame_bytes, marker_of
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.switch_spec import OTHER_WEIGHT, ClassSpec, SwitchSpec
from hpn.testbed.kernel.rtnetlink.mmu import CLASSES, PortClass, PortOptions

_NS_PER_M = 5.0
_QUANTUM_BITS = 512  # of a pause quantum (IEEE 802.3 annex 31B)
_HOST_BYTES = 64 << 20  # a host's memory for one class at one port, as its sockets' buffers
_SONIC = {0: 1, 1: 1, 2: 1, 3: 3, 4: 4, 5: 2, 8: 0, 46: 5, 48: 6}
_OTHERS, _ROUTING, CONTROL = 1, 6, 7
"""Priority of IP packets without an entry, of routing protocols (CS6), and of frames that are not IP."""


def react_ns(spec: FabricSpec, switch: SwitchSpec) -> int:
    """Return the time from XOFF's arrival to its effect: both ways of the cable and the MAC's response, as emulated."""
    return round((2 * _NS_PER_M * switch.cable_m + switch.response_ns) * spec.scale)


def headroom_bytes(spec: FabricSpec, switch: SwitchSpec, rate_bps: int) -> int:
    """Return what may arrive by a link of that (emulated) rate after the port decided to send XOFF."""
    on_the_way = react_ns(spec, switch) * rate_bps // 8 // 10**9
    return 2 * frame_bytes(spec) + on_the_way + burst_bytes(spec, rate_bps)


def lossless_priorities(switch: SwitchSpec) -> tuple[int, ...]:
    """Return the priorities for which ports send and obey PFC, in order."""
    return tuple(sorted(each.priority for each in switch.in_force if each.lossless))


def priority_of(switch: SwitchSpec) -> bytes:
    """Return the priority of each DSCP: those of the classes, then SONiC's default map (dscp_to_tc_map)."""
    own = {dscp: each.priority for each in switch.in_force for dscp in each.dscp}
    return bytes(own.get(dscp, _SONIC.get(dscp, _OTHERS)) for dscp in range(64))


def rdma_marker(spec: FabricSpec) -> Marker | None:
    """Return the ECN marking that RDMA packets meet: that of ``ecn``, or of their class of ``switch``; None without."""
    switch = spec.switch
    if switch is None:
        return marker_of(spec)
    own = priority_of(switch)[switch.rdma_dscp]
    ecn = next((each.ecn for each in switch.in_force if each.priority == own), None)
    return None if ecn is None else Marker(ecn.kmin, ecn.kmax, ecn.pmax)


def checkpoint_dscp(spec: FabricSpec) -> int:
    """Return the DSCP of a job's checkpoints: that of ``switch`` or of ``second_class``; 0 without either."""
    if spec.switch is not None:
        return spec.switch.checkpoint_dscp
    return 0 if spec.second_class is None else spec.second_class.dscp


def trimmed_dscp(spec: FabricSpec) -> int | None:
    """Return the DSCP of packets that switches cut to their headers; None if they cut none."""
    trims = spec.switch is not None and any(each.trim for each in spec.switch.in_force)
    return _switch(spec).trimming.dscp if trims else None


def shared_bytes(fabric: Fabric, node: str) -> int:
    """Return the buffer of a switch that its ports share: what is left beside the headroom of its lossless classes."""
    switch = _switch(fabric.spec)
    return switch.buffer - sum(
        _headroom(fabric.spec, switch, each, link.rate_bps)
        for link in fabric.links_of(node)
        for each in switch.in_force
        if each.lossless
    )


def first_threshold(each: ClassSpec, shared: int) -> int:
    """Return the bytes at which a class of the only port that holds any is stopped or dropped.

    With a dynamic threshold x = alpha (shared - x).
    """
    alpha = _alpha(each)
    dynamic = int(shared * alpha / (1 + alpha)) if alpha else shared
    return dynamic if each.limit is None else min(dynamic, each.limit)


def longest_pause_ns(rate_bps: int) -> int:
    """Return the longest time for which one PFC frame stops a port of that (emulated) rate."""
    return 65535 * quantum_ns(rate_bps)


def quantum_ns(rate_bps: int) -> int:
    """Return the time of 512 bits at that (emulated) rate, the unit of pauses."""
    return max(_QUANTUM_BITS * 10**9 // rate_bps, 1)


def _host_bytes(fabric: Fabric, node: str) -> int:
    """Return a host's memory: as much as all classes of its ports may hold, so that a stopped one drops no LACPDU."""
    return min(CLASSES * len(fabric.links_of(node)) * _HOST_BYTES, 2**32 - 1)


def _alpha(each: ClassSpec) -> float:
    """Return alpha, 0 for a class with a static threshold alone."""
    return each.alpha if each.alpha is not None else 0.0 if each.limit else 1.0


def port_options(fabric: Fabric, node: str, rate_bps: int) -> PortOptions:
    """Return the options of a port of that (emulated) rate. ValueError for a fabric without ``switch:``."""
    spec, switch, is_switch = fabric.spec, _switch(fabric.spec), fabric.node(node).is_switch
    watchdog = switch.watchdog
    options = PortOptions(
        buffer=shared_bytes(fabric, node) if is_switch else _host_bytes(fabric, node),
        quantum_ns=quantum_ns(rate_bps),
        react_ns=react_ns(spec, switch),
        classes=tuple(_classes(spec, switch, rate_bps, is_switch=is_switch)),
        class_of=priority_of(switch),
        is_switch=is_switch,
        trim_bytes=switch.trimming.bytes,
        trim_class=switch.trimming.priority,
        trim_dscp=switch.trimming.dscp,
    )
    if not is_switch:
        return replace(options, rdma_dscp=switch.rdma_dscp, cnp_dscp=switch.cnp_dscp)
    options = _balanced(replace(options, rate_kbps=rate_bps // 1000, seed=fabric.node(node).ecmp_seed), switch)
    if watchdog is None:
        return options
    return replace(options, detect_us=watchdog.detect_ms * 1000, restore_us=watchdog.restore_ms * 1000)


def balances(spec: FabricSpec) -> bool:
    """Return True if switches choose among next hops by themselves, so that nobody can tell a flow's path."""
    return spec.switch is not None and spec.switch.balancing is not None


def _balanced(options: PortOptions, switch: SwitchSpec) -> PortOptions:
    if switch.balancing is None:
        return options
    chosen, given = BALANCERS[switch.balancing.policy], switch.balancing.gap_ms
    gap_ms = chosen.gap_ms if given is None else given
    return replace(options, balance=chosen.by, gap_us=round((gap_ms or 0) * 1000))


def _classes(spec: FabricSpec, switch: SwitchSpec, rate_bps: int, *, is_switch: bool) -> Iterator[PortClass]:
    given = {each.priority: each for each in switch.in_force}
    for priority in range(CLASSES):
        each = given.get(priority)
        if each is None:
            strict = priority in {_ROUTING, CONTROL, switch.trimming.priority}
            made = PortClass(quantum=0 if strict else OTHER_WEIGHT * frame_bytes(spec), alpha=1.0)
        else:
            made = _port_class(spec, switch, each, rate_bps)
        yield made if is_switch else replace(made, limit=_HOST_BYTES, alpha=0.0, kmax=0, trim=False, watchdog=False)


def _port_class(spec: FabricSpec, switch: SwitchSpec, each: ClassSpec, rate_bps: int) -> PortClass:
    frame, watchdog, ecn = frame_bytes(spec), switch.watchdog, each.ecn
    made = PortClass(
        lossless=each.lossless,
        trim=each.trim,
        watchdog=each.lossless and watchdog is not None,
        forwards=watchdog is not None and watchdog.action == "forward",
        quantum=0 if each.weight is None else each.weight * frame,
        limit=each.limit or 0,
        alpha=_alpha(each),
        xon_offset=2 * frame if each.xon_offset is None else each.xon_offset,
        headroom=_headroom(spec, switch, each, rate_bps) if each.lossless else 0,
    )
    return made if ecn is None else replace(made, kmin=ecn.kmin, kmax=ecn.kmax, pmax=ecn.pmax)


def _headroom(spec: FabricSpec, switch: SwitchSpec, each: ClassSpec, rate_bps: int) -> int:
    return headroom_bytes(spec, switch, rate_bps) if each.headroom is None else each.headroom


def _switch(spec: FabricSpec) -> SwitchSpec:
    if spec.switch is None:
        raise ValueError(f"{spec.name} has no switch:")
    return spec.switch
