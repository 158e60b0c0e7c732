"""Linux source to build from: a named tar file, or the newest linux-source package that apt offers.

It comes from this machine's package lists, and from those of Debian's later suites if the user allows that. Needs no
root: a package that is not installed is downloaded by ``apt-get download`` and opened in the cache.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.kernel.process.processes import piped
from hpn.testbed.vm import later_suites
from hpn.testbed.vm.kernel_cache import numbers

INSTALLED = Path("/usr/src")
_PACKAGE = re.compile(r"linux-source-\d+(\.\d+)*")
_TARS = {".xz": "--xz", ".gz": "--gzip", ".bz2": "--bzip2", ".zst": "--zstd", ".tgz": "--gzip", ".tar": ""}
_APT_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel source; ``identity`` is its name with a checksum. ``tar`` is None until its package is downloaded.

    ``why`` it was chosen; ``apt`` are the options with which apt finds the package.
    """

    identity: str
    tar: Path | None
    package: str = ""
    version: str = ""
    why: str = "named with --source"
    apt: tuple[str, ...] = ()


def of_file(path: Path) -> Source:
    """Return a kernel source tar by path. InputError when it is not one."""
    if path.suffix not in _TARS or not path.is_file():
        raise InputError(f"{path} is no kernel source: name a tar file such as linux-6.12.tar.xz")
    with path.open("rb") as file:
        return Source(f"{path.name} sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}", path.absolute())


def newest_package(lists: Path | None = None) -> Source:
    """Return the newest linux-source package, offered by apt or installed. MachineError when there is none.

    With ``lists``, a folder for their package lists, the distribution's later suites are included.
    """
    own = _newest_offered((), "the newest in this machine's package lists")
    if lists is not None:
        return _newer_of_later_suites(own, lists)
    if own is not None:
        return own
    tars = sorted(INSTALLED.glob("linux-source-*.tar.*"), key=lambda path: numbers(path.name))
    if tars:
        return replace(of_file(tars[-1]), why=f"the newest in {INSTALLED}, as apt offers none")
    raise MachineError(
        "no kernel source: apt offers no linux-source package (apt-get update?); or name a tar file with --source"
    )


def _newer_of_later_suites(own: Source | None, lists: Path) -> Source:
    """Return the newest package of later suites, if it is newer than that of this machine's own lists."""
    suites = " and ".join(later_suites.SUITES)
    later = _newest_offered(later_suites.update(lists), f"the newest in {suites}")
    if later is None or (own is not None and numbers(later.version) <= numbers(own.version)):
        if own is None:
            raise MachineError(f"no kernel source: apt offers no linux-source package, {suites} included")
        return replace(own, why=f"{own.why}; {suites} have none that is newer")
    here = f"{own.package} {own.version}" if own is not None else "none"
    return replace(later, why=f"{later.why}; this machine's own lists offer {here}")


def fetch(source: Source, into: Path) -> Path:
    """Return its tar file, downloaded into ``into`` if necessary. MachineError."""
    if source.tar is not None:
        return source.tar
    tar = into / f"{source.package}_{source.version}.tar.xz"
    if tar.is_file():
        return tar
    into.mkdir(parents=True, exist_ok=True)
    _run(
        ["apt-get", *source.apt, "--quiet", "download", f"{source.package}={source.version}"],
        into,
        "download the kernel source",
    )
    deb = max(into.glob(f"{source.package}_*.deb"), key=lambda path: path.stat().st_mtime)
    unfinished = tar.with_suffix(".part")
    with unfinished.open("wb") as file:
        opener = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE)
        member = f"./usr/src/{source.package}.tar.xz"
        taken = subprocess.run(["tar", "-xO", member], stdin=opener.stdout, stdout=file, check=False)
        piped(opener.stdout).close()
    if opener.wait() != 0 or taken.returncode != 0:
        raise MachineError(f"{deb} holds no {member}; name a kernel source tar with --source")
    unfinished.rename(tar)
    deb.unlink()
    return tar


def tar_option(tar: Path) -> str:
    """Return tar's option for the file's compression."""
    return _TARS[tar.suffix]


def _newest_offered(apt: tuple[str, ...], why: str) -> Source | None:
    """Return the newest package that apt offers with these options."""
    if shutil.which("apt-cache") is None:
        return None
    names = [name for name in _words(["apt-cache", *apt, "pkgnames", "linux-source-"]) if _PACKAGE.fullmatch(name)]
    for name in sorted(names, key=numbers, reverse=True):
        shown = "\n".join(_lines(["apt-cache", *apt, "show", "--no-all-versions", name]))
        fields = dict(re.findall(r"^(Version|SHA256): (\S+)$", shown, re.MULTILINE))
        if "Version" in fields and "SHA256" in fields:
            version, identity = fields["Version"], f"{name} {fields['Version']} sha256:{fields['SHA256']}"
            tar = INSTALLED / f"{name}.tar.xz"
            installed = _installed_version(name) == version and tar.is_file()
            return Source(identity, tar if installed else None, name, version, why, apt)
    return None


def _installed_version(package: str) -> str:
    return next(iter(_words(["dpkg-query", "--show", "--showformat=${Version}", package])), "")


def _words(command: Sequence[str]) -> list[str]:
    return " ".join(_lines(command)).split()


def _lines(command: Sequence[str]) -> list[str]:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def _run(command: Sequence[str], cwd: Path, what: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_APT_TIMEOUT_S,
            check=False,
        )  # fmt: skip
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise MachineError(f"cannot {what} ({error}); name a kernel source tar with --source") from error
    if done.returncode != 0:
        words = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise MachineError(f"cannot {what}: {words} (apt-get update may help); or name a tar with --source")
