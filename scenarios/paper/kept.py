"""Runs of a reproduction that are on file, so that a second call makes only what is missing.

A run is used again if the same version of hpn would make it: the same code, kernel, engine, drill and draw. Changed
judges make no run out of date. The index is written after each run, and a run that was interrupted is not in it.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hpn.results.judge.verdict import Outcome
from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch.pool.drills import Made, RequestedRun
from hpn.scenarios.batch.pool.version import code_digest
from hpn.testbed.errors import HpnError
from hpn.testbed.files.replacing import replace_text
from hpn.testbed.vm import kernel_cache

INDEX = "made.json"
_NO_PART = ("scenarios/paper", "scenarios/library")
"""Folders of hpn that make no run another one: judges, and drills, each of which counts for its own runs."""
_KEYS = TypeAdapter(dict[str, str])


class Kept:
    """Runs on file in ``out``, by the names of ``wanted``."""

    def __init__(self, out: Path, wanted: Mapping[str, RequestedRun]) -> None:
        """Read the index; a damaged one counts as empty."""
        self._file = out / INDEX
        self._keys = keys_of(wanted)
        known = _read(self._file)
        self.runs = {name: wanted[name] for name, key in self._keys.items() if known.get(name) == key}
        self.runs = {name: each for name, each in self.runs.items() if _has_verdict(each.order.out)}

    def made(self) -> list[Made]:
        """Return the runs on file."""
        return [Made(name, RunFolder(each.order.out), 0.0) for name, each in self.runs.items()]

    def add(self, made: Made) -> None:
        """Enter a run that has just ended, in the order of names, unless there is none or its verdict is in doubt."""
        if isinstance(made.run, HpnError) or made.run.verdict().outcome is Outcome.INCONCLUSIVE:
            return
        entries = {**_read(self._file), made.name: self._keys[made.name]}
        replace_text(self._file, _KEYS.dump_json(dict(sorted(entries.items()))).decode())


def keys_of(wanted: Mapping[str, RequestedRun]) -> dict[str, str]:
    """Return a digest of what decides each run."""
    code = code_digest(_NO_PART)
    return {name: _key(code, each) for name, each in wanted.items()}


def _key(code: str, wanted: RequestedRun) -> str:
    order, spec = wanted.order, wanted.spec
    file = Path(order.drill.source).read_bytes()
    parts = (code, spec.name, _kernel(virtual_time=spec.virtual_time), order.drill.topology.seed, order.phase)
    return hashlib.sha256("\n".join(map(str, parts)).encode() + b"\n" + file).hexdigest()[:32]


def _kernel(*, virtual_time: bool) -> str:
    built = kernel_cache.newest() if virtual_time else None
    return built.key if built else platform.release()


def _read(file: Path) -> dict[str, str]:
    try:
        return _KEYS.validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return {}


def _has_verdict(folder: Path) -> bool:
    return folder.is_dir() and RunFolder(folder).has_verdict
