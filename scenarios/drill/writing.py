"""Generator of a new drill file: traffic, fault and target become text that loads. Pure.

Changes when a drill can run something else. A fault gets its parameters and its topology from the library's drill of
that fault. Expectations that the loader rejects are left out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.failover.faults import FAULTS, Parameter, Unit, VisibleTo, parameters
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.schema import NAME, RestoredFaultEntry, fault_model
from hpn.scenarios.drill.targets import accepted
from hpn.scenarios.drill.templates import TEMPLATES, Template
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import is_path, topology_from
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.files.check import Mistakes, did_you_mean
from hpn.testbed.files.document import Document, Plain, parse, read, shorten
from hpn.testbed.files.one_line import one_line
from hpn.testbed.files.units import format_duration, format_percent

_LASTS = "2 s"
_AT_ONCE = ("worst_outage", "queue_pair_deaths")
"""Limits for faults with carrier loss: others are detected by timers of protocols, and queue pairs may fail first."""
_PATIENT = ", ib_timeout: 20"
"""Of streams, for faults that nobody is told of: 34 s, as NCCL 2.30. At the default of 0.5 s they die of the wait."""
_KEYS_FIRST = ("id", "fault", "target", "at", "for")


@dataclass(frozen=True, slots=True)
class DrillRequest:
    """Request for a new drill; '' is filled in. ``topology`` is in the one-line form of a drill file.

    A topology file is relative to the current folder; the drill file, which is in ``folder``, names it relative to
    itself.
    """

    template: str = "streams"
    fault: str = "link-down"
    topology: str = ""
    target: str = ""
    name: str = ""
    load: str = "40 %"  # of streams, with its reason in ``why``
    why: str = "of each NIC's rate"
    stranded: int = 0  # number of ``queue_pairs`` that the fault leaves without a path
    queue_pairs: int = 0
    folder: str = ""
    source_ports: str = ""  # how paths are chosen; '' leaves the key out


def completed(wish: DrillRequest) -> DrillRequest:
    """Return the request with every open part filled in. InputError for an unknown word or parts that do not fit."""
    _check_word("template", wish.template, TEMPLATES)
    if not TEMPLATES[wish.template].breaks:
        return replace(wish, fault="", target="", topology=wish.topology or "tiny", name=wish.name or wish.template)
    _check_word("fault", wish.fault, FAULTS)
    model = _of_library(wish.fault)
    topology = wish.topology or model.topology
    target = wish.target or _target(wish.fault, topology, str(model.entry.get("target", "")))
    return replace(wish, topology=topology, target=target, name=wish.name or f"{wish.fault}-{wish.template}")


def written(wish: DrillRequest) -> str:
    """Return a drill file that loads. InputError with the loader's message when the request makes no valid drill."""
    wish = completed(wish)
    if not re.match(NAME, wish.name):
        raise InputError(f"{shorten(wish.name)} is no name of a drill; write a-z, 0-9 and '-', such as my-link-down")
    expects = _expects(wish)
    while True:
        head = _head(wish)
        text = head + "".join(f"  - {each}\n" for each in expects)
        try:
            drill_from(parse(text, wish.name), Path())
        except InputError as error:
            first = head.count("\n") + 1
            unfit = {at for at in range(len(expects)) if any(f":{first + at}: " in each for each in error.problems)}
            if not unfit or len(unfit) == len(expects):
                raise InputError([each.partition(": ")[2] or each for each in error.problems]) from None
            expects = [each for at, each in enumerate(expects) if at not in unfit]
        else:
            return text.replace(f"topology: {wish.topology}\n", f"topology: {_from_folder(wish)}\n", 1)


def _from_folder(wish: DrillRequest) -> str:
    """Return the topology relative to ``wish.folder``."""
    if not is_path(wish.topology) or Path(wish.topology).is_absolute():
        return wish.topology
    return os.path.relpath(os.path.realpath(wish.topology), os.path.realpath(wish.folder or "."))


def _expects(wish: DrillRequest) -> list[str]:
    """Return the expectations to try: for queue pairs that all have a path left, or for some without."""
    template = TEMPLATES[wish.template]
    if _tells_nobody(wish):
        late = [each for each in template.expects if not each.startswith("worst_outage")]
        return [each.replace("of: before}", "of: before, edge: repair}") for each in late]
    if template.breaks and template.streams and FAULTS[wish.fault].TELLS is not VisibleTo.CARRIER:
        return [each for each in template.expects if not each.startswith(_AT_ONCE)]
    if not wish.stranded or not template.stranded:
        return list(template.expects)
    return [
        each.replace("DEAD", str(wish.stranded)).replace("ALL", str(wish.queue_pairs)) for each in template.stranded
    ]


def _tells_nobody(wish: DrillRequest) -> bool:
    """Return True if streams stand still until a timer notices the fault, or until its repair."""
    template = TEMPLATES[wish.template]
    return template.breaks and template.streams and FAULTS[wish.fault].TELLS is VisibleTo.NOBODY


def _head(wish: DrillRequest) -> str:
    """Return everything before the entries of ``expect``."""
    template = TEMPLATES[wish.template]
    what = f"{wish.fault} of {wish.target}" if template.breaks else "no fault"
    summary = f"{what}: {template.summary.partition(': ')[2]}"
    return "\n".join(
        (
            "# hpn drill show FILE says it in words, hpn drill validate FILE every mistake; all keys: docs/drills.md",
            f"drill: {one_line(wish.name)}",
            f"summary: {json.dumps(summary[:160])}",
            f"topology: {wish.topology}",
            _with_source_ports(template.runs, wish.source_ports)
            .replace("GPUS", str(_gpus(_fabric(wish.topology))))
            .replace("LOAD", f"{wish.load}{_PATIENT if _tells_nobody(wish) else ''}")
            .replace("WHY", wish.why),
            "profile: quick  # full: a flow has recovered after 5 s without loss, as RFC 6412 asks",
            "timeline:",
            f"  healthy: {template.healthy}",
            *_faults(wish, template),
            f"  settle: {template.settle}",
            "expect:  # limits to begin with: make them yours",
            "",
        )
    )


def _with_source_ports(runs: str, policy: str) -> str:
    """Return the traffic's section with ``source_ports`` as its first key. InputError for a client."""
    if not policy:
        return runs
    if "  client:" in runs:
        raise InputError("--source-ports: a client chooses its own; take another template, or leave it out")
    if runs.startswith("workload: {"):
        return runs.replace("{", f"{{source_ports: {policy}, ", 1)
    return runs.replace("\n", f"\n  source_ports: {policy}\n", 1)


def _faults(wish: DrillRequest, template: Template) -> Iterator[str]:
    if not template.breaks:
        return
    entry = {**_of_library(wish.fault).entry, "fault": wish.fault, "target": wish.target, "at": template.healthy}
    keys = sorted(entry, key=lambda key: _KEYS_FIRST.index(key) if key in _KEYS_FIRST else len(_KEYS_FIRST))
    yield "  faults:"
    yield f"    - {{{', '.join(f'{key}: {one_line(entry[key])}' for key in keys)}}}"
    if more := [f"{p.key}: {_default(p)}" for p in parameters(FAULTS[wish.fault]).values() if p.key not in entry]:
        yield f"    # {wish.fault} takes more keys, by default {', '.join(more)}"


def _default(of: Parameter) -> str:
    """Return the default of a fault's parameter as a drill file writes it."""
    if of.unit is Unit.DURATION:
        return format_duration(int(of.default or 0))
    if of.unit is Unit.PERCENT:
        return format_percent(float(of.default or 0))
    return str(of.default) or "(any)"


@dataclass(frozen=True, slots=True)
class _Model:
    """Example of a fault in the library."""

    entry: Mapping[str, Plain]
    topology: str


def _of_library(fault: str) -> _Model:
    """Return the fault of the drill with its name, else of the first drill that has it, else from its examples."""
    own: list[Path] = []
    others: list[Path] = []
    for path in sorted(catalogue.LIBRARY.glob("*.yaml")):
        if re.search(rf"\bfault: {re.escape(fault)}[,}}]", path.read_text()):
            (own if path.stem == fault else others).append(path)
    for path in (*own, *others):
        document = read(path)
        faults = (document.section("timeline") or {}).get("faults")
        for entry in faults if isinstance(faults, list) else []:
            if isinstance(entry, dict) and entry.get("fault") == fault:
                return _Model(entry, one_line(document.data["topology"]))
    return _Model(_by_examples(fault), "tiny")


def _by_examples(fault: str) -> Mapping[str, Plain]:
    """Return the entry of a fault that the library lacks, such as a plug-in's."""
    model = fault_model(fault)
    fields = {field.alias or name: field for name, field in model.model_fields.items() if name != "id"}
    entry: dict[str, Plain] = {
        key: _plain(f.examples[0]) for key, f in fields.items() if f.is_required() and f.examples
    }
    return entry | ({"for": _LASTS} if issubclass(model, RestoredFaultEntry) else {})


def _plain(example: object) -> Plain:
    return example if isinstance(example, str | int | float) else str(example)


def _target(fault: str, topology: str, preferred: str) -> str:
    """Return the target: the one of the library's drill if it exists here, else the first accepted one."""
    parts = accepted(_fabric(topology), FAULTS[fault].TARGET)
    if not parts:
        raise InputError(
            f"{topology} has no {FAULTS[fault].TARGET}, which {fault} needs; leave --topology out for one that has"
        )
    return preferred if preferred in parts else parts[0]


def _fabric(topology: str) -> Fabric:
    """Return the fabric of that topology. InputError when it is invalid."""
    if "\n" in topology:
        raise InputError("--topology has several lines; write a preset, a file, or {preset: tiny, rails: 4}")
    document = parse(f"topology: {topology}\n", "--topology")
    mistakes = Mistakes(document)
    spec = topology_from(mistakes, ("topology",), Path())
    if spec is None:
        raise _without_place(mistakes.error(), document)
    return build(spec)


def _gpus(fabric: Fabric) -> int:
    """Return the number of GPUs of a job: one for each NIC of a host that is no spare."""
    return len(fabric.active_nics)


def _without_place(error: InputError, document: Document) -> InputError:
    return InputError([each.removeprefix(f"{document.name}:1: topology: ") for each in error.problems])


def _check_word(what: str, word: str, known: Sequence[str] | Mapping[str, object]) -> None:
    if word not in known:
        raise InputError(f"no {what} {shorten(word)}; {did_you_mean(word, known, 'write one of')}")
