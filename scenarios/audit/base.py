"""Topology file, and the configurations that it names, as they were in a commit, from git.

Changes when a base is read from another place. Nothing is checked out.
"""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.load import is_path, topology_in
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.wired.configs import folder_texts
from hpn.testbed.files.document import SIZE_LIMIT, parse, shorten

_TIMEOUT_S = 60
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def topology_at(commit: str, file: str) -> FabricSpec:
    """Return the topology in ``file`` as it was in ``commit``.

    InputError for a preset, an unknown commit, and a file that was not there or has mistakes. MachineError without
    git.
    """
    if not is_path(file):
        raise InputError(f"--base is for topology files; {shorten(file)} is a preset, which has no earlier version")
    path = Path(file)
    if not path.is_file():
        raise InputError(f"no file {file}; name the topology file as it is now")
    if not commit or commit.startswith("-"):
        raise InputError(f"--base {shorten(commit)} is no commit; write one such as HEAD~1 or main")
    folder = path.resolve().parent
    wanted = f"{commit}^{{commit}}"
    found = _git(folder, f"--base {shorten(commit)}", "rev-parse", "--verify", "--quiet", "--end-of-options", wanted)
    there = (folder, commit, found.decode(errors="replace").strip())
    document = parse(_text(*there, path.resolve().name), f"{file}@{commit}")
    return topology_in(document, path.stem, partial(_content, *there))


def _content(folder: Path, commit: str, digest: str, name: str) -> str | dict[str, str]:
    """Return the text of a file below the folder in a commit, or those of a host's folder by name."""
    told = f"{shorten(name, quoted=False)} in {shorten(commit)}"
    _refuse_outside(name, told)
    tree = f"{digest}:./{name.rstrip('/')}"
    if _git(folder, told, "cat-file", "-t", tree).strip() != b"tree":
        return _text(folder, commit, digest, name)
    names = _git(folder, told, "ls-tree", "-r", "-z", "--name-only", "--full-tree", tree).decode(errors="replace")
    below = (each for each in names.split("\0") if each)
    return folder_texts(name, below, lambda each: _text(folder, commit, digest, f"{name}/{each}"))


def _text(folder: Path, commit: str, digest: str, name: str) -> str:
    """Return the text of a file below the folder in a commit."""
    told = f"{shorten(name, quoted=False)} in {shorten(commit)}"
    _refuse_outside(name, told)
    text = _git(folder, told, "cat-file", "blob", f"{digest}:./{name}")
    if len(text) > SIZE_LIMIT:
        raise InputError(f"{told} is larger than any topology ({SIZE_LIMIT // 1024} KiB); name another commit")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise InputError(f"{told} is no text in UTF-8; name another commit") from None


def _refuse_outside(name: str, told: str) -> None:
    if os.path.isabs(name) or ".." in Path(name).parts:
        raise InputError(f"{told} leads out of the topology file's folder; copy it there")


def _git(folder: Path, what: str, *arguments: str) -> bytes:
    """Return the output of git in ``folder``. InputError with git's own words when it refuses."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_TIMEOUT_S, check=False, env={**os.environ, **_QUIET}
        )
    except FileNotFoundError:
        raise MachineError("--base needs git; install it") from None
    except subprocess.TimeoutExpired:
        raise MachineError(f"git did not answer within {_TIMEOUT_S} s; run it again") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else "git knows no such commit"
        raise InputError(f"{what}: {shorten(why, 200, quoted=False)}; name a commit that has the file")
    return done.stdout
