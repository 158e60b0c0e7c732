"""Imports by the names that hpn's packages had before they were below ``hpn``, for plug-ins written then.

``from failover.faults import FAULTS`` gives ``hpn.failover.faults``, the same module. Somebody else's module of such a
name stays theirs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from hpn.testbed.package import FOLDER, PACKAGES


class OldNames(MetaPathFinder, Loader):
    """Finds modules of ours by their old names, before Python makes a second copy from the same file."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As Python asks for it; None for what is not ours."""
        package, _, below = fullname.partition(".")
        if package not in PACKAGES:
            return None
        ours = sys.modules[package].__name__ == f"hpn.{package}" if below else _is_ours(package)
        return ModuleSpec(fullname, self) if ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module by its name of today."""
        module = importlib.import_module(f"hpn.{spec.name}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run already; Python has written the old name into it."""
        old = module.__spec__
        module.__spec__ = None if old is None else old.loader_state


def _is_ours(package: str) -> bool:
    """Whether no other package of that name is found first: in a checkout the room itself lies on Python's path."""
    spec = PathFinder.find_spec(package)
    places = () if spec is None else spec.submodule_search_locations or (str(spec.origin),)
    return all(Path(place).resolve() == (FOLDER / package).resolve() for place in places)


def accept() -> None:
    """From now on in this process."""
    if not any(isinstance(each, OldNames) for each in sys.meta_path):
        sys.meta_path.insert(0, OldNames())
