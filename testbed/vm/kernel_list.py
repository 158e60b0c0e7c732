"""Which kernels the cache holds, which of them is booted, and whether apt offers a source that none was built from.

Changes when more is to be said of a kernel in the cache.
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
    """A kernel in the cache. ``state``: what becomes of it; ``program`` is its path, ``build_s`` what it took."""

    release: str
    state: str
    source: str
    build_s: float
    program: str


@dataclass(frozen=True, slots=True)
class Offered:
    """The newest source that apt offers here, '' for none; ``built``: whether a kernel that can be booted is of it."""

    source: str
    built: bool
    text: str


def entries() -> list[Entry]:
    """Every whole kernel in the cache, the one that is booted first, then by age."""
    newest = kernel_cache.newest()
    found = sorted(kernel_cache.all_built(), key=lambda built: (built.usable, numbers(built.release)), reverse=True)
    return [_entry(built, newest) for built in found]


def _entry(built: Built, newest: Built | None) -> Entry:
    state = BOOTED if built == newest else KEPT if built.usable else OUTDATED
    return Entry(built.release, state, built.source, built.build_s, str(built.program))


def offered() -> Offered:
    """What this machine's package lists have; a second or less. Later suites are not asked."""
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
