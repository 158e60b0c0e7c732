"""Drill on a fabric that is not its own: each named part becomes the same part, or the first of its kind. Pure.

Changes when a drill file can name another kind of part. The drill's traffic spreads over the new fabric; its limits
stay the author's. The checks of every drill decide if the result is valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from hpn.failover.analysis.edge import Relation
from hpn.failover.faults import FAULTS, Unit, parameters
from hpn.scenarios.drill.coordinates import Axis, FabricPart, FabricParts, Moving
from hpn.scenarios.drill.fault_schedule import course
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill, OtherFabric
from hpn.scenarios.drill.workload import queue_pairs_of
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.check import dotted
from hpn.testbed.files.document import Document, Plain, Where

_SIZES = {
    "name", "pods", "segments", "hosts", "spare_hosts", "rails", "planes", "nic_ports", "aggs", "uplinks", "cores",
    "core_groups", "seed", "wiring",
}  # fmt: skip
"""Sizes of a topology; a drill's targets imply the sizes that it needs."""
_ALWAYS = {"nic_port_rate", "uplink_rate", "core_rate", "scale", "profile"}
"""Keys that a drill's times depend on, even if its own topology leaves them at their defaults."""
_NUMBERS = {"rail": Axis.RAIL, "rails": Axis.RAIL, "plane": Axis.PLANE, "planes": Axis.PLANE}
_NAMES = ("nic", "nics", "hosts")
_EXPECTED = re.compile(r"expect\[(\d+)\]")


def on_fabric(document: Document, base: Path, topology: FabricSpec) -> Drill:
    """Return the drill of a document on that topology. InputError, a line per reason, when it does not apply there.

    A limit that cannot be judged there is left out, with a note.
    """
    own = drill_from(document, base)
    fabric = build(topology)
    try:
        data, notes = _moved(document, own, fabric)
        drill, left_out = _without_unfit(Document(document.name, data, document.lines), base)
        _check_touches(own, drill)
    except InputError as error:
        where = f"{own.name} does not fit {topology.name} ({topology.architecture})"
        raise InputError([f"{where}: {_bare(each, document)}" for each in error.problems]) from None
    notes += [*left_out, *_settings(own.topology, topology)]
    return replace(drill, other_fabric=OtherFabric(topology, tuple(dict.fromkeys(notes))))


def document_on(document: Document, base: Path, topology: FabricSpec) -> Document:
    """Return a drill's file as it is on that topology, with limits that may not apply there. InputError as above."""
    data, _ = _moved(document, drill_from(document, base), build(topology))
    return Document(document.name, data, document.lines)


def with_keys(spec: FabricSpec, keys: Mapping[str, JsonValue]) -> FabricSpec:
    """Return the topology with these keys; what it sets of its own stays. InputError where they contradict it."""
    return FabricSpec.model_validate({**spec.model_dump(exclude_unset=True), **keys})


def _check_touches(own: Drill, there: Drill) -> None:
    """Raise InputError when the faults hit traffic on the drill's own fabric and none on the new one."""
    if _touches(own) and not _touches(there):
        targets = ", ".join(dict.fromkeys(planned.fault.target for planned in there.timeline.faults))
        alone = "there is one segment" if build(there.topology).segments == 1 else "nothing crosses it"
        raise InputError(f"no traffic of the drill meets {targets} on this fabric: {alone}")


def _touches(drill: Drill) -> bool:
    fabric = build(drill.topology)
    steps = course(fabric, drill.timeline.faults, queue_pairs_of(drill, fabric))
    return any(how is not Relation.NONE for step in steps for how in step.relations.values())


def _bare(problem: str, document: Document) -> str:
    """Return a problem without file and line, which refer to the drill's own fabric."""
    place, _, text = problem.partition(": ")
    return text if place.startswith(f"{document.name}:") else problem


def _without_unfit(document: Document, base: Path) -> tuple[Drill, list[str]]:
    """Return the drill with its applicable limits and a note for each other. InputError when none applies."""
    entries, notes = document.data["expect"], list[str]()
    kept = list(range(len(entries))) if isinstance(entries, list) else []
    while True:
        try:
            return drill_from(_expecting(document, kept), base), notes
        except InputError as error:
            about = [(each, _EXPECTED.match(_bare(each, document))) for each in error.problems]
            unfit = {int(found[1]) for _, found in about if found is not None}
            if len(unfit) == len(kept) or not all(found for _, found in about):
                raise
            notes += [f"left out: {_bare(each, document).partition('; ')[0]}" for each in error.problems]
            kept = [entry for at, entry in enumerate(kept) if at not in unfit]


def _expecting(document: Document, kept: Sequence[int]) -> Document:
    """Return the document with these entries of ``expect``, each with its own lines."""
    entries = document.data["expect"]
    chosen = [entries[entry] for entry in kept] if isinstance(entries, list) else entries
    lines = {where: line for where, line in document.lines.items() if where[:1] != ("expect",)}
    for at, entry in enumerate(kept):
        own = (where for where in document.lines if where[:2] == ("expect", entry))
        lines |= {("expect", at, *where[2:]): document.lines[where] for where in own}
    return Document(document.name, {**document.data, "expect": chosen}, lines)


def _moved(document: Document, own: Drill, fabric: Fabric) -> tuple[dict[str, Plain], list[str]]:
    """Return the drill's file for that fabric and the changes, one line per name."""
    data, here, there = deepcopy(document.data), FabricParts(build(own.topology)), FabricParts(fabric)
    named = [(where, name, part) for where, name in _named(data) if (part := _part(here, where, name)) is not None]
    moving, problems, notes = Moving((part for *_, part in named), there), list[str](), list[str]()
    for where, name, part in named:
        try:
            found = _value(moving, part, name)
        except InputError as error:
            if where[0] == "expect":
                continue  # the check of the limit reports that its part is missing
            problems += error.problems
            continue
        if found != name:
            _put(data, where, found)
            notes.append(f"{_what(where)} {name} of the drill -> {found}")
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    notes += _fitted(data, own, fabric)
    data["topology"] = {"name": fabric.spec.name, **fabric.spec.model_dump(mode="json", exclude_unset=True)}
    return data, notes


def _part(here: FabricParts, where: Where, name: str | int) -> FabricPart | None:
    """Return the part of the drill's own fabric for a name or number, or None if it names no part."""
    if isinstance(name, int):
        axis = _NUMBERS[next(str(key) for key in reversed(where) if isinstance(key, str))]
        return FabricPart(str(name), "", ((axis, name),))
    return here.named(name)


def _value(moving: Moving, part: FabricPart, name: str | int) -> str | int:
    return moving.number(*part.spot[0]) if isinstance(name, int) else moving.moved(part)


def _named(data: dict[str, Plain]) -> Iterator[tuple[Where, str | int]]:
    """Yield every place of a drill file that names a part of the fabric, with the name."""
    for where, given in _places(data):
        for at, each in enumerate(given) if isinstance(given, list) else ((None, given),):
            if isinstance(each, str | int) and not isinstance(each, bool):
                yield (where if at is None else (*where, at)), each


def _places(data: dict[str, Plain]) -> Iterator[tuple[Where, Plain]]:
    timeline, expect = data.get("timeline"), data.get("expect")
    faults = timeline.get("faults") if isinstance(timeline, dict) else None
    for at, entry in enumerate(faults if isinstance(faults, list) else []):
        if isinstance(entry, dict):
            kind = parameters(FAULTS[str(entry["fault"])]).values()
            keys = ("target", *(each.key for each in kind if each.unit is Unit.NAME))
            yield from ((("timeline", "faults", at, key), entry[key]) for key in keys if key in entry)
    for at, entry in enumerate(expect if isinstance(expect, list) else []):
        for metric, limits in entry.items() if isinstance(entry, dict) else ():
            given = limits if isinstance(limits, dict) else {}
            yield from ((("expect", at, metric, key), given[key]) for key in (*_NUMBERS, *_NAMES) if key in given)
    for where in (("capture", "links"), ("job", "checkpoints", "storage")):
        found: Plain = data
        for key in where:
            found = found.get(key) if isinstance(found, dict) else None
        if found is not None:
            yield where, found


def _put(data: dict[str, Plain], where: Where, value: Plain) -> None:
    inside: Any = data  # a name was read from there, so every key on the way exists
    for key in where[:-1]:
        inside = inside[key]
    inside[where[-1]] = value


def _what(where: Where) -> str:
    """Return the key as text: 'target', or 'expect[2].untouched.rails'."""
    return str(where[-1]) if where[0] == "timeline" else dotted(where if isinstance(where[-1], str) else where[:-1])


def _fitted(data: dict[str, Plain], own: Drill, fabric: Fabric) -> Iterator[str]:
    """Limit the job to the size of the fabric, for numbers in its file; yield the changes."""
    job = data.get("job")
    if own.job is None or not isinstance(job, dict):
        return
    active = [host for host in fabric.hosts if not host.spare]
    most = {
        "hosts": len(active),
        "gpus": fabric.rails,
        "segments": len({(host.pod, host.segment) for host in active}),
    }
    for key, many in most.items():
        given = job.get(key)
        if isinstance(given, int) and given > many:
            job[key] = many
            yield f"job.{key} {given} of the drill -> {many}"
    training = job.get("training")
    if isinstance(training, dict):
        ranks = _number(job, "hosts", most["hosts"]) * _number(job, "gpus", most["gpus"])
        rest = _number(training, "tensor", 1) * _number(training, "pipeline", 1)
        data_ranks = _number(training, "data", 1)
        if data_ranks * rest != ranks and ranks % rest == 0:
            training["data"] = ranks // rest
            yield f"job.training.data {data_ranks} of the drill -> {ranks // rest}"


def _number(given: dict[str, Plain], key: str, default: int) -> int:
    found = given.get(key)
    return found if isinstance(found, int) else default


def _settings(own: FabricSpec, there: FabricSpec) -> Iterator[str]:
    """Yield settings of the drill's own topology, except sizes, that differ here; rates always count."""
    mine, theirs, plain = (dict(_leaves(spec)) for spec in (own, there, FabricSpec()))
    for key, value in mine.items():
        if theirs.get(key) != value and (value != plain.get(key) or key in _ALWAYS):
            yield f"{key} is {_word(value)} on the drill's own fabric, {_word(theirs.get(key))} here"


def _leaves(spec: FabricSpec) -> Iterator[tuple[str, Plain]]:
    def inside(name: str, value: Plain) -> Iterator[tuple[str, Plain]]:
        if isinstance(value, dict):
            for key, each in value.items():
                yield from inside(f"{name}.{key}" if name else key, each)
        else:
            yield name, value

    return inside("", spec.model_dump(mode="json", exclude=_SIZES))


def _word(value: Plain) -> str:
    if value is None:
        return "not set"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
