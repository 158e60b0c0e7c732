"""Rules for the keys below ``switch:``: each is valid alone, but impossible or meaningless together. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.balancing import BALANCERS
from hpn.testbed.fabric.buffers import CONTROL, first_threshold, longest_pause_ns, priority_of, shared_bytes
from hpn.testbed.fabric.marking import Marker, frame_bytes
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.switch_spec import ClassSpec, SwitchSpec

_CS6 = 48
_At = tuple[str | int, ...]


def buffer_problems(spec: FabricSpec) -> Iterator[Problem]:
    """Yield all conflicts below ``switch:``, and with the keys that it takes the place of."""
    switch = spec.switch
    if switch is None:
        return
    for key in ("ecn", "second_class"):
        if getattr(spec, key) is not None:
            yield (key,), f"{key} and switch cannot both be; write {key} as one of switch.classes"
    yield from _priorities(switch)
    if switch.balancing is not None and switch.balancing.gap_ms is not None:
        chosen = BALANCERS[switch.balancing.policy]
        if chosen.gap_ms is None:
            yield ("switch", "balancing", "gap_ms"), f"{chosen.name} chooses for each packet; leave gap_ms out"
    for number, each in enumerate(switch.classes):
        for field, problem in (*_class(spec, switch, each), *_ecn(spec, switch, each)):
            yield ("switch", "classes", number, *field), f"priority {each.priority}: {problem}"
    trimming = next((each for each in switch.in_force if each.priority == switch.trimming.priority), None)
    if trimming is not None and (trimming.lossless or trimming.trim):
        yield ("switch", "trimming", "priority"), f"priority {trimming.priority} is lossless or trims; write another"


def check_buffers(fabric: Fabric) -> None:
    """Raise InputError if the headroom of a switch's ports leaves too little of its buffer to share."""
    switch = fabric.spec.switch
    if switch is None:
        return
    least, fewest = min((shared_bytes(fabric, node.name), node.name) for node in fabric.switches)
    needed = switch.buffer - least
    if least < 2 * frame_bytes(fabric.spec):
        raise InputError(
            f"switch.buffer of {switch.buffer} B: {fewest} needs {needed} B for the headroom of its ports;"
            f" write at least {needed + 2 * frame_bytes(fabric.spec)} B, or less headroom"
        )


def buffer_notes(fabric: Fabric) -> Iterator[str]:
    """Yield settings that are allowed and hardly meant: marks that come after PFC, a watchdog within one pause."""
    switch = fabric.spec.switch
    if switch is None:
        return
    shared = min(shared_bytes(fabric, node.name) for node in fabric.switches)
    for each in switch.in_force:
        first = first_threshold(each, shared)
        if each.lossless and each.ecn is not None and each.ecn.kmin >= first:
            yield (
                f"priority {each.priority}: PFC stops a port that holds {first:,} B, and ECN marks from"
                f" {each.ecn.kmin:,} B on: senders are stopped and never marked; write a smaller kmin"
            )
    longest_ms = longest_pause_ns(min(link.rate_bps for link in fabric.links)) / 1e6
    if switch.watchdog is not None and switch.watchdog.detect_ms <= longest_ms:
        yield (
            f"the watchdog fires after {switch.watchdog.detect_ms} ms, and one XOFF may stop a port for"
            f" {longest_ms:.0f} ms; write detect_ms: {longest_ms + 1:.0f} or more"
        )


def _priorities(switch: SwitchSpec) -> Iterator[Problem]:
    seen: set[int] = set()
    taken: dict[int, int] = {}
    for number, each in enumerate(switch.classes):
        if each.priority in seen:
            yield ("switch", "classes", number, "priority"), f"priority {each.priority} is there already"
        seen.add(each.priority)
        for dscp in each.dscp:
            if taken.setdefault(dscp, number) != number:
                yield ("switch", "classes", number, "dscp"), f"DSCP {dscp} belongs to another class already"


def _class(spec: FabricSpec, switch: SwitchSpec, each: ClassSpec) -> Iterator[tuple[_At, str]]:
    frame = frame_bytes(spec)
    if each.limit is not None and each.limit > switch.buffer:
        yield ("limit",), f"the limit of {each.limit} B is above the buffer of {switch.buffer} B"
    if each.limit is not None and each.limit < frame:
        yield ("limit",), f"the limit of {each.limit} B is less than one frame of {frame} B"
    if not each.lossless:
        for key in ("headroom", "xon_offset"):
            if getattr(each, key) is not None:
                yield (key,), f"{key} is for lossless classes; leave it out, or write lossless: yes"
        return
    if each.headroom is not None and each.headroom < frame:
        yield ("headroom",), f"headroom of {each.headroom} B is less than one frame of {frame} B"
    if each.xon_offset is not None and each.limit is not None and each.xon_offset >= each.limit:
        yield ("xon_offset",), f"XON would be {each.xon_offset} B below a limit of {each.limit} B: it is never sent"
    if each.trim:
        yield ("trim",), "a lossless class drops nothing that could be trimmed; write lossless: no, or leave trim out"
    if each.priority == CONTROL or priority_of(switch)[_CS6] == each.priority:
        yield ("lossless",), "PFC would stop LACP, BGP or BFD in it, and take links down; write another priority"


def _ecn(spec: FabricSpec, switch: SwitchSpec, each: ClassSpec) -> Iterator[tuple[_At, str]]:
    if each.ecn is not None:
        marker = Marker(each.ecn.kmin, each.ecn.kmax, each.ecn.pmax)
        for field, problem in marker.problems(switch.buffer, frame_bytes(spec)):
            yield ("ecn", field.removesuffix("_bytes")), f"ecn.{field.removesuffix('_bytes')}: {problem}"
