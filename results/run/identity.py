"""Which experiment a run is of: what was asked of which fabric, and a digest of it. Pure.

Changes when something else makes a run another experiment. Names, texts, file paths and limits are no part of it: two
runs that differ in these have measured the same. Nor is what belongs to a repeat (its phase and its own seed) or to a
machine (engine, kernel, and what its LAG datapath and marker came to), which results show beside it.
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
from hpn.testbed.fabric.spec import FabricSpec

FABRIC, DRILL, SETTINGS = "fabric", "drill", "settings"
_NO_PART: Mapping[str, bool | set[str]] = {"name": True, "seed": True, "lag": True, "ecn": {"marker"}}
_DIGITS = 16
_LONGEST = 80
_MOST_TOLD, _MOST_WORDS = 8, 3


@dataclass(frozen=True, slots=True)
class Identity:
    """``digests`` of fabric, drill (faults and when they come) and settings (traffic and how it is measured).

    ``told``: what they are of, in words, by dotted keys of topology and drill files.
    """

    digests: Mapping[str, str]
    told: Mapping[str, str]


UNKNOWN = Identity({}, {})
RUN_BY = ("lacp", "stack", "bgp", "path_control")
"""Sections of a topology that say how a fabric is run; all other keys say which fabric it is."""
_OF_FABRIC = {*FabricSpec.model_fields, "links"}


def experiment_of(digests: Mapping[str, str]) -> str:
    """One digest of fabric, drill and settings; '' where any of them is not known."""
    parts = [digests.get(part, "") for part in (FABRIC, DRILL, SETTINGS)]
    return digest_of(parts) if all(parts) else ""


def identity_of(fabric: Fabric, drill: AskedDrill, phase_ms: float = 0.0) -> Identity:
    """Of a drill asked of a fabric, its faults ``phase_ms`` later than in its file.

    Settings are not known of jobs and clients in folders of an older hpn.
    """
    seed = _seed(fabric.spec, drill)
    links: list[JsonValue] = [*sorted(f"{link.name} {link.rate_bps}" for link in fabric.links)]
    given: JsonValue = fabric.spec.model_dump(mode="json", exclude=_NO_PART, exclude_defaults=True)
    course, settings = _course(drill, round(phase_ms * 1e6)), _settings(drill)
    found: dict[str, JsonValue] = {FABRIC: [given, seed, links], DRILL: course, SETTINGS: settings}
    whole: dict[str, JsonValue] = fabric.spec.model_dump(mode="json", exclude=_NO_PART)
    words = {**whole, "seed": seed, "links": _counted(fabric), **course, **(settings or {})}
    return Identity(
        {part: digest_of(content) for part, content in found.items() if content is not None}, dict(_flat("", words))
    )


def _counted(fabric: Fabric) -> dict[str, JsonValue]:
    """'24 of 200 Gbit/s' by tier, at the rates of the real network."""
    found = Counter((link.kind.value, link.rate_bps * fabric.spec.scale) for link in fabric.links)
    tiers: dict[str, list[str]] = {}
    for (kind, bps), count in sorted(found.items()):
        tiers.setdefault(kind, []).append(f"{count} of {bps / 1e9:g} Gbit/s")
    return {kind: " and ".join(counts) for kind, counts in tiers.items()}


def identity_in(run: RunFolder, manifest: Manifest) -> Identity:
    """Of a run folder: digests as its manifest has them, else made of what else it holds, as far as that goes."""
    try:
        found = identity_of(run.fabric(), run.drill(), manifest.phase_ms)
    except (InputError, MachineError):
        return Identity(manifest.digests, {})
    return Identity(manifest.digests or found.digests, found.told)


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """'path_control.enabled: false | true', with ';' between several; '' where nothing is known to differ."""
    return _in_words(one, other, _differing(one, other))


def run_otherwise(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """As ``since``, of one fabric that is run in another way; '' where it is another fabric, or nobody knows."""
    keys = [key for key in _differing(one, other) if _section(key) in _OF_FABRIC]
    return _since(one, other, keys) if all(_section(key) in RUN_BY for key in keys) else ""


def other_fabric(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """As ``since``, of what makes it another fabric; links only where no setting makes them other links."""
    keys = [key for key in _differing(one, other) if _section(key) in _OF_FABRIC and _section(key) not in RUN_BY]
    return _since(one, other, [key for key in keys if _section(key) != "links"] or keys)


def since(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """As ``differences``, where the first is the older: 'bgp.hold_s was 9, is 30'."""
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
    """Of each what not all have: 'path_control.enabled false'; '' where nothing is known to."""
    known = [each for each in told if each]
    keys = [key for key in dict.fromkeys(key for each in known for key in each) if len({e.get(key) for e in known}) > 1]
    more = f", and {len(keys) - _MOST_WORDS} more" if len(keys) > _MOST_WORDS else ""
    shown = keys[:_MOST_WORDS]
    return [
        ", ".join(f"{key_in_file(key)} {_value(each, key)}" for key in shown) + more if each else "" for each in told
    ]


def _seed(spec: FabricSpec, drill: AskedDrill) -> int | None:
    """The topology's own: a repeat's is drawn from it. None where an older hpn did not say it, as of jobs."""
    if drill.seed is not None or not drill.workload:
        return drill.seed
    kept = drill.workload.get("seed")
    return kept if isinstance(kept, int) else spec.seed


def _course(drill: AskedDrill, shift_ns: int) -> dict[str, JsonValue]:
    """Faults and times as the drill's file has them; a repeat's come later by ``shift_ns``."""
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
    """Of plain data, whatever the order of its keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:_DIGITS]


def _flat(key: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    """Leaves by dotted keys; what is null is left out, and a long list is told by its number and digest."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _flat(f"{key}.{name}" if key else name, each)
    elif value is not None:
        text = value if isinstance(value, str) else json.dumps(value)
        if len(text) > _LONGEST:
            text = f"{len(value) if isinstance(value, list) else 1} of digest {digest_of(value)}"
        yield key, text
