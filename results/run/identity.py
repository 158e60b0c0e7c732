"""The experiment that a run belongs to: the drill, the fabric, and a digest of both. Pure.

Changes when something else makes a run another experiment. Names, texts, file paths and limits do not count: two runs
that differ only in these measured the same. A repeat's phase and seed do not count either. Nor do facts of a machine
(engine, kernel, and the LAG datapath and marker that were chosen); results show these separately.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import JsonValue

from hpn.results.run.drill import AskedDrill
from hpn.results.run.filewords import key_in_file, value_in_file
from hpn.results.run.folder import RunFolder
from hpn.results.run.manifest import Manifest
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import WIRED, FabricSpec

FABRIC, DRILL, SETTINGS = "fabric", "drill", "settings"
_NO_PART: Mapping[str, bool | set[str]] = {"name": True, "seed": True, "lag": True, "wiring": True, "ecn": {"marker"}}
_DIGITS = 16
_LONGEST = 80
_MOST_TOLD, _MOST_WORDS = 8, 3


@dataclass(frozen=True, slots=True)
class Identity:
    """Digests that identify an experiment, and the settings behind them.

    ``digests`` cover fabric, drill (faults and their times) and settings (traffic and how it is measured). ``told`` has
    the settings in words, by dotted keys of topology and drill files.
    """

    digests: Mapping[str, str]
    told: Mapping[str, str]


UNKNOWN = Identity({}, {})
RUN_BY = ("host_profile", "nic", "lacp", "stack", "bgp", "path_control")
"""Sections of a topology that configure how a fabric is run; all other keys define the fabric itself."""
_OF_FABRIC = {*FabricSpec.model_fields, "nodes", "links", "host_profile"}


def experiment_of(digests: Mapping[str, str]) -> str:
    """Return one digest of fabric, drill and settings; '' if any of them is unknown."""
    parts = [digests.get(part, "") for part in (FABRIC, DRILL, SETTINGS)]
    return digest_of(parts) if all(parts) else ""


def identity_of(fabric: Fabric, drill: AskedDrill, phase_ms: float = 0.0) -> Identity:
    """Return the identity of a drill on a fabric; its faults are ``phase_ms`` later than in its file.

    Settings of jobs and clients are unknown in folders of an older hpn.
    """
    seed = _seed(fabric.spec, drill)
    links: list[JsonValue] = [*sorted(f"{link.name} {link.rate_bps}" for link in fabric.links)]
    given: JsonValue = fabric.spec.model_dump(mode="json", exclude={**_NO_PART, "profile": True}, exclude_defaults=True)
    course, settings = _course(drill, round(phase_ms * 1e6)), _settings(drill)
    nodes = _nodes(fabric)
    found: dict[str, JsonValue] = {FABRIC: [given, seed, links, *nodes], DRILL: course, SETTINGS: settings}
    whole: dict[str, JsonValue] = fabric.spec.model_dump(mode="json", exclude=_NO_PART)
    whole = {"host_profile": whole.pop("profile"), **whole}  # a drill's measurement has a profile too
    if nodes:
        whole["nodes"] = digest_of(nodes)
    words = {**whole, "seed": seed, "links": _counted(fabric), **course, **(settings or {})}
    return Identity(
        {part: digest_of(content) for part, content in found.items() if content is not None}, dict(_flat("", words))
    )


def _nodes(fabric: Fabric) -> list[JsonValue]:
    """Return the nodes of a fabric that its settings do not imply, a line for each."""
    if fabric.spec.architecture != WIRED:
        return []
    given = ("role", "pod", "index", "segment", "rail", "plane", "spare", "asn", "router_id", "lacp_system")
    nodes: list[JsonValue] = [
        f"{node.name} {' '.join(str(getattr(node, key)) for key in given)}" for node in fabric.nodes
    ]
    return [*nodes, *(f"{nic.name} {nic.bonding}" for nic in fabric.nics if nic.bonding is not None)]


def _counted(fabric: Fabric) -> dict[str, JsonValue]:
    """Return link counts and rates of the real network by tier, such as '24 of 200 Gbit/s'."""
    found = Counter((link.kind.value, link.rate_bps * fabric.spec.scale) for link in fabric.links)
    tiers: dict[str, list[str]] = {}
    for (kind, bps), count in sorted(found.items()):
        tiers.setdefault(kind, []).append(f"{count} of {bps / 1e9:g} Gbit/s")
    return {kind: " and ".join(counts) for kind, counts in tiers.items()}


def identity_in(run: RunFolder, manifest: Manifest) -> Identity:
    """Return the identity of a run folder: digests from its manifest, else computed from its other files."""
    try:
        found = identity_of(run.fabric(), run.drill(), manifest.phase_ms)
    except (InputError, MachineError):
        return Identity(manifest.digests, {})
    return Identity(manifest.digests or found.digests, found.told)


def all_settings(told: Mapping[str, str], manifest: Manifest) -> Mapping[str, str]:
    """Return the settings with all of a job or a client: a drill's file has those only that are not as usual."""
    of = {"job": manifest.job, "client": manifest.client}
    given = {f"{part}.{key}": str(value) for part, values in of.items() for key, value in values.items()}
    return {**told, **{key: value for key, value in given.items() if key not in told}}


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return the differences: 'path_control.enabled: false | true', joined by ';'. '' if none is known."""
    return _in_words(one, other, _differing(one, other))


def run_otherwise(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return the changes of how one fabric is run, in the form of ``since``; '' for another or an unknown fabric."""
    keys = [key for key in _differing(one, other) if _section(key) in _OF_FABRIC]
    return _since(one, other, keys) if all(_section(key) in RUN_BY for key in keys) else ""


def other_fabric(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return, in the form of ``since``, what makes it another fabric; links only if no setting explains them."""
    keys = [key for key in _differing(one, other) if _section(key) in _OF_FABRIC and _section(key) not in RUN_BY]
    return _since(one, other, [key for key in keys if _section(key) != "links"] or keys)


def since(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return the differences where the first is the older: 'bgp.hold_s was 9, is 30'."""
    return _since(one, other, _differing(one, other))


def _since(one: Mapping[str, str], other: Mapping[str, str], keys: Sequence[str]) -> str:
    return _listed([f"{key_in_file(key)} was {_value(one, key)}, is {_value(other, key)}" for key in keys])


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return [key for key in dict.fromkeys((*one, *other)) if one.get(key) != other.get(key)] if one and other else []


def _section(key: str) -> str:
    return key.partition(".")[0]


def _in_words(one: Mapping[str, str], other: Mapping[str, str], keys: Sequence[str]) -> str:
    return _listed([f"{key_in_file(key)}: {_value(one, key)} | {_value(other, key)}" for key in keys])


def _value(told: Mapping[str, str], key: str) -> str:
    return value_in_file(key, told[key]) if key in told else "none"


def _listed(told: Sequence[str]) -> str:
    more = [f"and {len(told) - _MOST_TOLD} more"] if len(told) > _MOST_TOLD else []
    return "; ".join([*told[:_MOST_TOLD], *more])


def sets_apart(told: Sequence[Mapping[str, str]]) -> list[str]:
    """Return for each the settings that not all share: 'path_control.enabled false'; '' where none is known."""
    known = [each for each in told if each]
    keys = [key for key in dict.fromkeys(key for each in known for key in each) if len({e.get(key) for e in known}) > 1]
    more = f", and {len(keys) - _MOST_WORDS} more" if len(keys) > _MOST_WORDS else ""
    shown = keys[:_MOST_WORDS]
    return [
        ", ".join(f"{key_in_file(key)} {_value(each, key)}" for key in shown) + more if each else "" for each in told
    ]


def _seed(spec: FabricSpec, drill: AskedDrill) -> int | None:
    """Return the topology's own seed, from which a repeat's is derived.

    None if an older hpn did not store it, as for jobs.
    """
    if drill.seed is not None or not drill.workload:
        return drill.seed
    kept = drill.workload.get("seed")
    return kept if isinstance(kept, int) else spec.seed


def _course(drill: AskedDrill, shift_ns: int) -> dict[str, JsonValue]:
    """Return faults and times as in the drill file; those of a repeat come later by ``shift_ns``."""
    faults: dict[str, JsonValue] = {
        str(at): {
            "kind": fault.kind,
            "target": fault.target,
            **fault.parameters,
            "moments": [f"{moment.kind} {moment.at_ns - shift_ns}" for moment in fault.moments],
        }
        for at, fault in enumerate(drill.faults)
    }
    return {"faults": faults, "healthy_ns": drill.healthy_ns - shift_ns, "end_ns": drill.end_ns - shift_ns}


def _settings(drill: AskedDrill) -> dict[str, JsonValue] | None:
    if (drill.job or drill.client) and not drill.asks:
        return None
    workload: dict[str, JsonValue] = {
        key: value for key, value in drill.workload.items() if key != "seed" and value is not None
    }
    measured: dict[str, JsonValue] = {"profile": drill.profile, "delay_threshold_ns": drill.delay_threshold_ns}
    return {**measured, "workload": workload, **drill.asks}


def digest_of(content: JsonValue | Iterable[str]) -> str:
    """Return the digest of plain data, independent of the order of its keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:_DIGITS]


def _flat(key: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield leaves by dotted keys, without nulls; a long list is shown by its length and digest."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _flat(f"{key}.{name}" if key else name, each)
    elif value is not None:
        text = value if isinstance(value, str) else json.dumps(value)
        if len(text) > _LONGEST:
            text = f"{len(value) if isinstance(value, list) else 1} of digest {digest_of(value)}"
        yield key, text
