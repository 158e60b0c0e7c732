"""Package lists of the distribution's later suites, besides this machine's own, for newer kernel sources.

They use a list file with the machine's mirror and separate folders for all files of apt. So the machine's apt stays
unchanged and no root is needed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from hpn.testbed.errors import MachineError

SUITES = ("stable-backports", "unstable")
"""Debian suites, queried in this order."""

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TIMEOUT_S = 600.0
_HELP = "name a kernel source tar with --source"


def update(folder: Path) -> tuple[str, ...]:
    """Download their package lists into ``folder``; return apt's options for using them. MachineError."""
    signed = f"[signed-by={_KEYRING}] " if _KEYRING.is_file() else ""
    mirror = _mirror()
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    sources = folder / "later-suites.list"
    sources.write_text("".join(f"deb {signed}{mirror} {suite} main\n" for suite in SUITES))
    options = _options(sources, folder)
    _run(["apt-get", *options, "--quiet", "--error-on=any", "update"])
    return options


def _options(sources: Path, folder: Path) -> tuple[str, ...]:
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",  # the folder is private: apt's own user could not enter it
    }
    return tuple(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))


def _mirror() -> str:
    """Return this machine's Debian mirror. MachineError when it is not Debian."""
    asked = ["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME) $(ORIGIN)", "Created-By: Packages"]
    for line in _run(asked).splitlines():
        site, codename, origin = [*line.split(" "), "", "", ""][:3]
        if origin == "Debian" and codename.isalpha():  # not bookworm-updates, bookworm-security
            return site
    raise MachineError(f"later suites are known of Debian only, and apt names no mirror of it here; {_HELP}")


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise MachineError(f"cannot read package lists of later suites ({error}); {_HELP}") from error
    if done.returncode != 0:
        words = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise MachineError(f"cannot read package lists of later suites: {words}; {_HELP}")
    return done.stdout
