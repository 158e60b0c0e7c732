"""Shell completion: names that a user would otherwise have to look up.

Changes when something else can be looked up. Slow look-ups are cached (``commands.completion_cache``). If a look-up
fails, nothing is offered and no error is shown, since the user is still typing. Names that a shell would interpret are
not offered.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from hpn.commands.completion_cache import digest, kept
from hpn.testbed.errors import HpnError

if TYPE_CHECKING:
    from hpn.testbed.lab.service.labfolder import LabFolder

_Found = TypeVar("_Found")
Items = list[CompletionItem]
Completer = Callable[[click.Context, click.Parameter, str], Items]

_MANIFEST = "manifest.json"
_LOOK_AT = 2_000
"""Maximum folders read for one key press."""
_RUNS = "runs"


def _names_of(where: str) -> list[str]:
    """Return the names in 'module:NAME': keys of a registry, names, entries with a key, or the result of a function."""
    module, _, name = where.partition(":")
    found = getattr(import_module(module), name)
    return [getattr(each, "key", each) for each in (found() if callable(found) else found)]


def _listed(name: str, where: str, *, or_file: bool = False) -> Completer:
    """Return a completer for names of a registry. ``or_file``: complete files, too, if the text looks like a path."""

    def complete(_context: click.Context, _param: click.Parameter, incomplete: str) -> Items:
        if or_file and (incomplete.startswith(".") or "/" in incomplete):
            return [CompletionItem(incomplete, type="file")]
        found = _items(_safely(lambda: kept(re.sub(r"\W", "-", where).lower(), lambda: _names_of(where))), incomplete)
        return found or ([CompletionItem(incomplete, type="file")] if or_file else [])

    complete.__name__ = name
    return complete


drill_names = _listed("drill_names", "hpn.scenarios.drill.catalogue:names", or_file=True)
topologies = _listed("topologies", "hpn.testbed.fabric.presets:PRESETS", or_file=True)
presets = _listed("presets", "hpn.testbed.fabric.presets:PRESETS")
faults = _listed("faults", "hpn.failover.faults:FAULTS")
templates = _listed("templates", "hpn.scenarios.drill.writing:TEMPLATES")
claims = _listed("claims", "hpn.scenarios.paper.claims:CLAIMS")
networks = _listed("networks", "hpn.scenarios.model.month.month:NETWORKS")


def targets(context: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return possible targets of a new drill's fault, on its topology."""
    fault = str(context.params.get("fault") or "link-down")
    topology = str(context.params.get("topology") or "tiny")

    def find() -> list[str]:
        from hpn.failover.faults import FAULTS
        from hpn.scenarios.drill.targets import accepted
        from hpn.testbed.fabric.load import load_fabric

        return [*accepted(load_fabric(topology), FAULTS[fault].TARGET)] if fault in FAULTS else []

    content = b"" if topology.startswith("{") else _content(topology)
    return _items(_safely(lambda: kept(f"targets-{digest(fault, topology, content)}", find)), incomplete)


def labs(_context: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return running labs."""
    return _items((lab.name for lab in _labs()), incomplete)


def nodes(context: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return hosts and switches of the lab."""
    return _items(_parts(context, "nodes"), incomplete)


def nics(context: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return NICs of the lab."""
    return _items(_parts(context, "nics"), incomplete)


def parts(context: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return nodes, NICs and links of the lab."""
    return _items(_parts(context, "nodes", "nics", "links"), incomplete)


def runs(_context: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return run folders; any folders if there are none."""
    return _items(_runs(incomplete), incomplete) or [CompletionItem(incomplete, type="dir")]


def places(_context: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return run folders and folders that contain some; any folders if there are none."""
    found = _runs(incomplete)
    above = sorted({os.path.dirname(each) for each in found} - {""})
    return _items([*above, *found], incomplete) or [CompletionItem(incomplete, type="dir")]


def _labs() -> list[LabFolder]:
    from hpn.testbed.lab.service.registry import glimpsed

    return _safely(glimpsed)


def _parts(context: click.Context, *kinds: str) -> Iterator[str]:
    """Yield names of parts of the lab that --lab selects, or of all labs without it."""
    asked = context.params.get("lab_name")
    for lab in _labs():
        if asked in (None, lab.name):
            for kind in kinds:
                yield from _safely(partial(_parts_of, lab.path / "fabric.json", kind))


def _parts_of(file: Path, kind: str) -> list[str]:
    text = file.read_bytes()

    def find() -> list[str]:
        from hpn.testbed.fabric.build import build
        from hpn.testbed.fabric.spec import FabricSpec

        return [part.name for part in getattr(build(FabricSpec.model_validate_json(text)), kind)]

    return kept(f"{kind}-{digest(text)}", find)


def _content(path: str) -> bytes:
    """Return the bytes of a file; empty if there is none, as for a preset."""
    try:
        return Path(path).read_bytes() if os.path.isfile(path) else b""
    except OSError:
        return b""


def _runs(incomplete: str) -> list[str]:
    """Return run folders up to two levels below the folder typed so far, or below ./runs, the newest first."""
    begun, _, _ = incomplete.rpartition("/")
    starts = [f"{begun}/"] if "/" in incomplete else [f"{_RUNS}/", ""] if _RUNS.startswith(incomplete) else [""]
    seen = islice((path for start in starts for path in _folders(start, incomplete)), _LOOK_AT)
    return [path for path in seen if os.path.isfile(f"{path}/{_MANIFEST}")]


def _folders(start: str, incomplete: str) -> Iterator[str]:
    """Yield folders that match the typed text, then those within each.

    Names descend, as they are mostly times.
    """
    first = [path for path in _within(start) if path.startswith(incomplete)]
    yield from first
    for folder in first:
        yield from _within(f"{folder}/")


def _within(start: str) -> list[str]:
    try:
        with os.scandir(start or ".") as found:
            names = [each.name for each in islice(found, _LOOK_AT) if each.is_dir() and not each.name.startswith(".")]
    except (OSError, ValueError):
        return []
    return [f"{start}{name}" for name in sorted(names, reverse=True)]


def _safely(find: Callable[[], list[_Found]]) -> list[_Found]:
    """Return the result; an empty list on errors."""
    try:
        found = find()
        return [*found] if isinstance(found, list) else []  # the cache may be damaged
    except (HpnError, OSError, ValueError):
        return []


def _items(known: Iterable[str], incomplete: str) -> Items:
    """Return the names with that prefix which need no quoting in a shell."""
    fit = dict.fromkeys(name for name in known if isinstance(name, str) and name.startswith(incomplete))
    return [CompletionItem(name) for name in fit if shlex.quote(name) == name and not name.startswith("-")]
