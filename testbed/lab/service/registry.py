"""The register of one user's labs: a private directory, one folder per lab; without a held lock it is a leftover."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.lab.service import lost
from hpn.testbed.lab.service.labfolder import DIED, DYING_S, ENDING, LOST, NAME, LabFolder, LabRecord, is_dying

if TYPE_CHECKING:
    from hpn.testbed.fabric.model import Fabric


def base_directory() -> Path:
    """Return the user's directory for labs, created with mode 0700. MachineError when another user owns it."""
    base = _place()
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = base.lstat()
    except OSError as error:
        raise MachineError(f"cannot use {base} for lab state ({error.strerror}); set HPN_STATE_DIR") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise MachineError(f"{base} is not a private directory of yours; remove it or set HPN_STATE_DIR")
    return base


def _place() -> Path:
    override = os.environ.get("HPN_STATE_DIR")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if override:
        return Path(override)
    if os.geteuid() == 0:
        return Path("/run/hpn")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "hpn"
    return Path(f"/tmp/hpn-{os.geteuid()}")


def glimpsed() -> list[LabFolder]:
    """Return the folders of labs whose lock is held, sorted by name; creates, removes and waits for nothing.

    OSError if the user's directory cannot be read, or is not private.
    """
    base = _place()
    if (found := base.lstat()).st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{base} is not a private directory")
    return [lab for path in sorted(base.iterdir()) if (lab := LabFolder(path)).is_lab() and lab.is_held()]


def check_name(name: str) -> str:
    """Return the name itself. InputError when it is not a valid lab name."""
    if NAME.fullmatch(name) is None:
        raise InputError(f"{name!r} is no lab name; use up to 31 of a-z, 0-9 and '-', starting with a letter or digit")
    return name


def folder(name: str) -> LabFolder:
    """Return the folder of a lab name, which need not exist. InputError for an invalid name."""
    return LabFolder(base_directory() / check_name(name))


def free_folder(name: str) -> LabFolder:
    """Return the folder for a new lab. InputError for an invalid name, or while a lab lives whose folder it was."""
    for place in lost.labs_of(base_directory()):
        if place.name == name:
            _reachable(place)
    return folder(name)


def everything() -> Iterator[tuple[LabFolder, LabRecord]]:
    """Yield every lab of this user, including dead ones with an error message; remove other leftovers."""
    base = base_directory()
    gone = list(lost.labs_of(base))
    for path in sorted(base.iterdir()):
        found = LabFolder(path)
        if not found.is_lab():
            continue
        if found.is_held():
            yield found, _living(found)
        elif found.name in {place.name for place in gone}:
            continue  # the rest of its folder still belongs to a living lab
        elif words := found.last_words():
            record = found.read() or _unknown(found)
            yield found, replace(record, state=DIED, reason=words)
        else:
            found.remove_when_released(DYING_S)
    yield from ((place, _living(place)) for place in gone)


def running() -> Iterator[tuple[LabFolder, LabRecord]]:
    """Yield every living lab of this user."""
    return ((place, record) for place, record in everything() if record.state != DIED)


def _living(found: LabFolder) -> LabRecord:
    """Return the record of a lab whose lock is held, updated from the lock's holder."""
    record, holder = found.read() or _unknown(found), found.holder()
    record = replace(record, reason=record.reason or found.last_words())  # for example a daemon that was lost
    if holder is None:
        return replace(record, state=ENDING)
    if found.lost_lock is not None:
        record = replace(record, name=found.name, state=LOST, reason=_reason_lost(found))
    return replace(record, first_pid=holder, state=ENDING if is_dying(holder) else record.state)


def _unknown(found: LabFolder) -> LabRecord:
    try:
        since = (found.lost_lock or found.path).stat().st_mtime
    except OSError:  # it has just ended
        since = time.time()
    return LabRecord(found.name, 0, "?", 0, 0, "", since, reason="its record is missing")


def _reason_lost(found: LabFolder) -> str:
    return f"somebody removed its folder {found.path}, or the lock in it; end it: hpn down {found.name}"


def _reachable(found: LabFolder) -> LabFolder:
    """Return the lab itself. InputError when its folder was removed, which leaves no access to it."""
    if found.lost_lock is not None:
        raise InputError(f"lab {found.name} is lost: {_reason_lost(found)}")
    return found


def find(name: str | None) -> tuple[LabFolder, LabRecord]:
    """Return the named lab, or the only one. InputError, listing the labs that are up, otherwise."""
    labs = list(running())
    if name is None:
        if len(labs) == 1:
            return _reachable(labs[0][0]), labs[0][1]
        names = ", ".join(record.name for _, record in labs)
        raise InputError(f"which lab? --lab one of: {names}" if labs else "no lab is up; start one: hpn up tiny")
    for found, record in labs:
        if record.name == name:
            return _reachable(found), record
    for place, record in everything():
        if record.name == name:
            raise InputError(f"lab {name} has died: {record.reason} (more in {place.log}); clear it: hpn down {name}")
    names = ", ".join(record.name for _, record in labs) or "none; start one: hpn up tiny"
    raise InputError(f"no lab {name!r} is up; up now: {names}")


def fabric_of(place: LabFolder) -> Fabric:
    """Return the fabric of a running lab. MachineError when its folder is damaged, or of another version of hpn."""
    from hpn.testbed.fabric.build import build  # pydantic, which the completion of lab names does not need
    from hpn.testbed.fabric.spec import FabricSpec

    try:
        return build(FabricSpec.model_validate_json((place.path / "fabric.json").read_text()))
    except (OSError, ValueError) as error:
        raise MachineError(
            f"lab {place.name}: its state is damaged, or another version of hpn started it;"
            f" end it: hpn down {place.name}"
        ) from error
