"""Topology files written for users: a preset and the keys that differ become text that loads. Pure.

Changes when such a file should explain more about its keys. Each key is described in ``testbed.fabric.spec``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import TopologyFile, topology_in
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import WIRED, FabricSpec
from hpn.testbed.files.check import models_in
from hpn.testbed.files.document import DEPTH_LIMIT, Document, Plain, parse, shorten
from hpn.testbed.files.one_line import one_line

_HINT = "write KEY=VALUE, such as hosts=4 or lacp.rate=slow"


def written(preset: str, settings: Sequence[str]) -> str:
    """Return the text of a topology file that loads and can be built; it has every key that was set.

    ``settings`` are 'KEY=VALUE', with dots between a key and its parents. InputError with every mistake that the
    loader finds, or when a switch has too few ports.
    """
    data: dict[str, Plain] = {}
    for setting in settings:
        _lay(data, setting)
    _check(_document(preset, data))
    text = "\n".join((*_head(preset), *setting_lines(data, TopologyFile), ""))
    _check(parse(text, "--set"))
    return text


def as_data(spec: FabricSpec) -> Plain:
    """Return a specification as a drill file holds it: the name of a preset, or the keys that are no default."""
    if spec.name in PRESETS and PRESETS[spec.name].spec == spec:
        return spec.name
    data: dict[str, Plain] = spec.model_dump(mode="json", exclude_defaults=True)
    if spec.architecture == WIRED and spec.path_control.enabled:  # which a wired network has only if its file says so
        given = spec.path_control.model_dump(mode="json", exclude_defaults=True)
        data["path_control"] = {"enabled": True, **given}
    return {"name": spec.name, **data}


def _lay(data: dict[str, Plain], setting: str) -> None:
    """Insert one setting into ``data``."""
    path, equals, value = setting.partition("=")
    if not equals or not path or "\n" in setting:
        raise InputError(f"--set {shorten(setting)}: {_HINT}")
    *above, last = path.split(".")
    if len(above) > DEPTH_LIMIT:
        raise InputError(f"--set {shorten(path)}: no key lies so deep; {_HINT}")
    if path == "preset":
        raise InputError(f"--set preset: the preset has an option of its own; write --preset {value}")
    place = data
    for key in above:
        inside = place.setdefault(key, {})
        if not isinstance(inside, dict):
            raise InputError(f"--set {shorten(path)}: {shorten(key)} is set to a value already; leave one of them out")
        place = inside
    if last in place:
        raise InputError(f"--set {shorten(path)}: it is set twice; leave one of them out")
    place[last] = _value(path, value)


def _value(path: str, text: str) -> Plain:
    try:
        return parse(f"value: {text}\n", "--set").data["value"]
    except InputError as error:
        raise _without_place(error, f"--set {shorten(path)}: ") from None


def _document(preset: str, data: Mapping[str, Plain]) -> Document:
    top: dict[str, Plain] = {"preset": preset, **data}
    return parse(f"{{{', '.join(f'{one_line(key)}: {one_line(value)}' for key, value in top.items())}}}", "--set")


def _check(document: Document) -> None:
    """Raise InputError if the loader or the builder would reject the file."""
    try:
        spec = topology_in(document, "custom")
    except InputError as error:
        raise _without_place(error) from None
    build(spec)


def _without_place(error: InputError, prefix: str = "") -> InputError:
    """Strip the line numbers of an error: they refer to generated text that the user does not see."""
    places = (each.partition(": ") for each in error.problems)
    return InputError(
        [prefix + (text if place.startswith("--set:") else place + colon + text) for place, colon, text in places]
    )


def _head(preset: str) -> Iterator[str]:
    yield "# A preset and what differs from it. hpn plan FILE shows the fabric; all keys: docs/architectures.md"
    yield f"preset: {preset}  # by itself: {PRESETS[preset].summary}"


def setting_lines(data: Mapping[str, Plain], model: type[BaseModel], indent: str = "") -> Iterator[str]:
    """Yield a line for each key, with its description; sections are mappings below their key."""
    for key, value in data.items():
        field = model.model_fields[key]
        about = f"  # {' '.join(field.description.split())}" if field.description else ""
        section = next(iter(models_in(field.annotation)), None)
        if isinstance(value, dict) and value and section is not None:
            yield f"{indent}{key}:{about}"
            yield from setting_lines(value, section, f"{indent}  ")
        else:
            yield f"{indent}{key}: {one_line(value)}{about}"
