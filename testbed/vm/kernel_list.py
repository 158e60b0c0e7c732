"""Kernels in the cache, the one that is booted, and a newer source from apt, if any.

Changes when more about cached kernels is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import kernel_cache, kernel_source
from hpn.testbed.vm.kernel_cache import Built, numbers
from hpn.testbed.vm.kernel_source import Source

BOOTED, KEPT, OUTDATED = "booted", "kept", "older recipe, not used"


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel in the cache. ``state``: its use; ``program`` is its path, ``build_s`` its build time."""

    release: str
    state: str
    source: str
    build_s: float
    program: str


@dataclass(frozen=True, slots=True)
class Offered:
    """The newest source from apt here, '' for none; ``built``: True if a bootable kernel was built from it."""

    source: str
    built: bool
    text: str


def entries() -> list[Entry]:
    """Return every complete kernel in the cache, the one that is booted first, then by age."""
    newest = kernel_cache.newest()
    found = sorted(kernel_cache.all_built(), key=lambda built: (built.usable, numbers(built.release)), reverse=True)
    return [_entry(built, newest) for built in found]


def _entry(built: Built, newest: Built | None) -> Entry:
    state = BOOTED if built == newest else KEPT if built.usable else OUTDATED
    return Entry(built.release, state, built.source, built.build_s, str(built.program))


def offered() -> Offered:
    """Return the newest source in this machine's package lists; a second or less. Later suites are not queried."""
    try:
        source = kernel_source.newest_package()
    except MachineError as error:
        return Offered("", False, str(error))
    built = any(kernel.source == source.identity for kernel in kernel_cache.usable())
    return Offered(source.identity, built, f"apt offers {source.identity.split(' sha256:')[0]}: {_news(source, built)}")


def _news(source: Source, built: bool) -> str:
    newest = kernel_cache.newest()
    if built:
        return "a kernel here is of it"
    if newest is not None and source.version and numbers(source.version.split("-")[0]) < numbers(newest.release):
        return f"older than {newest.release}, which is here"
    return "no kernel here is of it: hpn vm build-kernel"
