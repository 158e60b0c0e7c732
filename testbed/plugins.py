"""Plug-ins: Python files in a user's folder, which add entries to the registries of hpn.

They are loaded before the registries are used, also in guests and in the processes of a pool: all of them get the
folders from the environment. Workers of a dask scheduler get them with each task (``scenarios.batch.pool.sent_files``).
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hpn.testbed import oldnames
from hpn.testbed.errors import InputError

VARIABLE = "HPN_PLUGINS"
GIVEN = "hpn.plugins"
"""Key of click's context for the folders of ``--plugin``, which following commands need too."""
_PREFIX = "hpn_plugin_"


def use(wanted: Sequence[Path]) -> None:
    """Load the plug-ins of these folders, here and in all commands started from here. InputError as ``load_all``."""
    for folder in wanted:
        if os.pathsep in str(folder.resolve()):
            raise InputError(f"{folder.resolve()} holds {os.pathsep!r}, which stands between folders; rename it")
    os.environ |= environment_of([*folders(), *(folder.resolve() for folder in wanted)])
    load_all()


def folders() -> list[Path]:
    """Return the folders that the environment names."""
    return [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def environment_of(folders: Iterable[Path]) -> Mapping[str, str]:
    """Return an environment that names exactly these folders."""
    return {VARIABLE: os.pathsep.join(dict.fromkeys(map(str, folders)))}


def load_all() -> None:
    """Load the plug-ins of every folder that the environment names, each file once, in order of their names.

    Hidden files and anything but regular files are skipped.
    InputError, with the place, when a folder does not exist or a file cannot be imported.
    """
    for folder in folders():
        oldnames.accept()
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder; --plugin and {VARIABLE} take folders with Python files")
        for file in sorted(folder.glob("[!.]*.py")):
            if file.is_file() or not file.exists():  # a dangling link is reported
                _load(file)


def loaded() -> tuple[str, ...]:
    """Return the files of the plug-ins that are loaded."""
    return tuple(str(module.__file__) for name, module in sys.modules.items() if name.startswith(_PREFIX))


def environment() -> Mapping[str, str]:
    """Return the environment for a command elsewhere with the same files."""
    return {VARIABLE: os.environ[VARIABLE]} if VARIABLE in os.environ else {}


def _load(file: Path) -> None:
    name = f"{_PREFIX}{file.stem}"
    known = sys.modules.get(name)
    if known is not None:
        if known.__file__ != str(file):
            raise InputError(f"{file}: there is a plug-in of that name already, {known.__file__}; rename one")
        return
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: Python cannot load such a file; give it a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # third-party code: its way of ending must not be ours
        del sys.modules[name]
        raise InputError(f"{file}:{_line(error, file)}: {type(error).__name__}: {error}") from error


def _line(error: BaseException, file: Path) -> int:
    """Return the last line of ``file`` in the error's traceback."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno or 1
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 1 for frame in reversed(frames) if frame.filename == str(file)), 1)
