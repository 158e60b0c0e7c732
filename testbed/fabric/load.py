"""Topologies by name, file or inline mapping, as a validated ``FabricSpec``: presets, ``preset:`` bases, overrides.

``load_fabric`` also builds it, so that port budgets and sizes are reported with the file they come from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.rules import contradictions
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.wired.configs import ReadConfig, below, with_texts
from hpn.testbed.files import kinds
from hpn.testbed.files.check import Mistakes, did_you_mean, dotted
from hpn.testbed.files.document import Document, Plain, Where, read, shorten
from hpn.testbed.files.words import OneOf
from hpn.testbed.lag.datapaths import AUTO, DATAPATHS
from hpn.testbed.routing.pathcontrol.policies import OFF


class TopologyFile(FabricSpec):
    """A ``FabricSpec`` and the preset it builds on (taken out before the check; here it is a key like the others)."""

    preset: str = Field(default="", description="what the other keys are laid over; hpn presets lists them")
    lag: Annotated[str, OneOf(DATAPATHS, AUTO)] = Field(
        default=AUTO, description="what bundles a NIC's ports: kernel is Linux bonding, nft a datapath of hpn"
    )


def load_topology(name_or_path: str) -> FabricSpec:
    """Return the preset of that name, or the specification in that YAML file. InputError lists every mistake."""
    if not is_path(name_or_path):
        return _preset(name_or_path)
    return topology_in(read(name_or_path), Path(name_or_path).stem)


def topology_in(document: Document, name: str, read_config: ReadConfig | None = None) -> FabricSpec:
    """Return the specification in a document, named ``name`` if it gives no name. InputError lists every mistake.

    ``read_config``: reader of the configurations that it names; left out, they are beside the document.
    """
    kinds.expect(document, "topology")
    mistakes = Mistakes(document)
    spec = _spec(mistakes, (), document.data, name, read_config or below(Path(document.name).parent))
    if mistakes or spec is None:
        raise mistakes.error()
    return spec


def load_fabric(name_or_path: str) -> Fabric:
    """Load a topology as ``load_topology`` does and build it. InputError names the file, if there is one."""
    spec = load_topology(name_or_path)
    try:
        return build(spec)
    except InputError as error:
        if not is_path(name_or_path):
            raise
        raise InputError([f"{name_or_path}:1: {problem}" for problem in error.problems]) from None


def topology_from(mistakes: Mistakes, at: Where, base: Path) -> FabricSpec | None:
    """Return the topology at ``at`` in another file: preset name, path relative to ``base``, or mapping.

    None if it noted mistakes.
    """
    given = mistakes.document.value(at)
    if isinstance(given, dict):
        return _spec(mistakes, at, given, "custom", below(base))
    if not isinstance(given, str):
        hint = "write a preset (such as tiny), a file, or {preset: tiny, ...}"
        mistakes.add(at, f"{dotted(at)} is {shorten(given)}; {hint}")
        return None
    try:
        if not is_path(given):
            return _preset(given)
        path = _named_shortly(base / given)
        return topology_in(read(path), Path(path).stem)
    except InputError as error:
        mistakes.add_all(at, error, f"{dotted(at)}: ")
        return None


def _named_shortly(path: Path) -> str:
    """Shorten 'drills/../topology.yaml' to 'topology.yaml', unless a symlink makes that another file."""
    short = os.path.normpath(path)
    try:
        return short if os.path.samefile(path, short) else str(path)
    except (OSError, ValueError):  # no such file: reading it reports that
        return str(path)


def is_path(text: str) -> bool:
    """Return True if ``text`` names a file; otherwise it is a preset."""
    return "/" in text or text.endswith((".yaml", ".yml"))


def _preset(name: str) -> FabricSpec:
    if name in PRESETS:
        return PRESETS[name].spec
    hint = did_you_mean(name, PRESETS, "presets are")
    raise InputError(f"no preset {shorten(name)}; {hint} (a topology file ends in .yaml)")


def _spec(
    mistakes: Mistakes, at: Where, given: dict[str, Plain], name: str, read_config: ReadConfig
) -> FabricSpec | None:
    """Return the specification in ``given``, which is at ``at`` in its file; None if it noted mistakes."""
    base = _base(mistakes, at, given)
    data = _merge({"name": _slug(name), **base}, {key: value for key, value in given.items() if key != "preset"})
    data = with_texts(mistakes, at, data, read_config)
    _check_architecture(mistakes, at, data.get("architecture"))
    file = mistakes.check(TopologyFile, data, at)
    if file is None:
        return None
    if file.architecture not in ARCHITECTURES:
        return None
    problems = [*contradictions(file), *_two_words(file)]
    for where, text in problems:
        mistakes.add((*at, *where), text)
    if problems:
        return None
    return FabricSpec.model_validate(file.model_dump(exclude={"preset"}, exclude_unset=True))


def _two_words(file: FabricSpec) -> Iterator[Problem]:
    """Yield keys that contradict each other about path control."""
    control = file.path_control
    if control.enabled and control.model_fields_set >= {"enabled", "policy"} and control.policy == OFF:
        text = "path_control.policy is off, but path_control.enabled is yes; leave one of them out"
        yield ("path_control", "policy"), text


def _base(mistakes: Mistakes, at: Where, given: dict[str, Plain]) -> dict[str, Plain]:
    """Return the data of the ``preset:`` that ``given`` builds on; empty when it names none."""
    if "preset" not in given:
        return {}
    preset = given["preset"]
    if isinstance(preset, str) and preset in PRESETS:
        data: dict[str, Plain] = PRESETS[preset].spec.model_dump(exclude_unset=True)
        return data
    where: Where = (*at, "preset")
    hint = did_you_mean(str(preset), PRESETS, "write one of")
    mistakes.add(where, f"{dotted(where)} is {shorten(preset)}; {hint}")
    return {}


def _check_architecture(mistakes: Mistakes, at: Where, given: Plain) -> None:
    if isinstance(given, str) and given not in ARCHITECTURES:
        where: Where = (*at, "architecture")
        hint = did_you_mean(given, ARCHITECTURES, "write one of")
        mistakes.add(where, f"{dotted(where)} is {shorten(given)}; {hint}")


def _merge(base: dict[str, Plain], over: dict[str, Plain]) -> dict[str, Plain]:
    """Merge ``over`` into ``base``, mappings key by key."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _slug(name: str) -> str:
    """Turn ``name`` into a valid fabric name; 'custom' if nothing of it is left."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:31].rstrip("-")
    return slug if re.match(r"[a-z]", slug) else "custom"
