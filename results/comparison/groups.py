"""Runs that may be taken together, and what sets groups of them apart. Pure.

Changes when something else makes a run another experiment. A median over two experiments is a figure of neither:
link-down on HPN and on single-ToR together would be "275 ms", the middle of 0 and 549.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from failover.analysis.model import DrillMetrics
from results.run.manifest import Manifest
from results.verdict import Outcome, Verdict
from testbed.errors import InputError


class Across(StrEnum):
    """What runs may differ in when it is asked for; the value is the word for ``--across``."""

    DRILL = "drill"
    FABRIC = "fabric"
    ENGINE = "engine"  # with its kernel and LAG datapath
    KERNEL = "kernel"
    SETTINGS = "settings"  # profile, load, marker, job, client
    VERSION = "version"  # of hpn, with its commit: never needs asking, and is always told


_BRINGS: Mapping[Across, Collection[Across]] = {
    Across.DRILL: (Across.SETTINGS,),
    Across.ENGINE: (Across.KERNEL,),
}
"""What differs with something else: another drill has other settings, another engine its own kernel."""
_PARTS = ", "
_COMMIT = 12
"""Digits of a commit that are told."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One run, with the folder that names it."""

    folder: str
    manifest: Manifest
    metrics: DrillMetrics
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one experiment. ``runs`` are those that can be trusted; ``left_out`` the number of the others."""

    label: str
    setting: Mapping[Across, str]
    runs: tuple[Compared, ...]
    left_out: int


def grouped(runs: Iterable[Compared], across: Collection[Across]) -> tuple[Group, ...]:
    """Groups in the order of their first runs. InputError when they differ in what is not in ``across``."""
    found: dict[tuple[tuple[Across, str], ...], list[Compared]] = {}
    for run in runs:
        found.setdefault(tuple(_setting(run.manifest).items()), []).append(run)
    settings = [dict(key) for key in found]
    differ = [what for what in Across if len({setting[what] for setting in settings}) > 1]
    _check(differ, across, settings)
    labels = _labels(settings, differ)
    return tuple(_group(*each) for each in zip(settings, labels, found.values(), strict=True))


def check_trusted(groups: Iterable[Group]) -> None:
    """InputError for a group without a run that can be trusted: it has no figures."""
    for group in groups:
        if not group.runs:
            raise InputError(
                f"none of the {group.left_out} runs of {group.label} can be trusted: they are inconclusive"
            )


def _check(differ: Sequence[Across], across: Collection[Across], settings: Sequence[Mapping[Across, str]]) -> None:
    allowed = {*across, Across.VERSION, *(brought for what in across for brought in _BRINGS.get(what, ()))}
    refused = [what for what in differ if what not in allowed]
    brought = {each for what in refused for each in _BRINGS.get(what, ())}
    if refused:
        values = sorted({setting[refused[0]] for setting in settings})
        ways_out = " ".join(f"--across {what}" for what in refused if what not in brought)
        raise InputError(
            f"these runs differ in their {refused[0]} ({' | '.join(values[:4])}), so that a difference would not be"
            f" that of one cause; leave some out, or write {ways_out}"
        )


def _group(setting: Mapping[Across, str], label: str, runs: Sequence[Compared]) -> Group:
    trusted = tuple(run for run in runs if run.verdict.outcome is not Outcome.INCONCLUSIVE or not run.verdict.doubts)
    return Group(label, setting, trusted, len(runs) - len(trusted))


def _labels(settings: Sequence[Mapping[Across, str]], differ: Sequence[Across]) -> Iterator[str]:
    """What sets each apart, in as few words as do: of settings, parts that not all have; numbers where none does."""
    brought = {each for what in differ for each in _BRINGS.get(what, ())}
    told = [what for what in differ if what not in brought]
    common = set.intersection(*(set(_parts(setting)) for setting in settings))
    for at, setting in enumerate(settings, start=1):
        words = [setting[what] for what in told if what is not Across.SETTINGS]
        words += [part for part in _parts(setting) if part not in common] if Across.SETTINGS in told else []
        yield _PARTS.join(words) or (setting[Across.DRILL] if len(settings) == 1 else f"group {at}")


def _parts(setting: Mapping[Across, str]) -> Sequence[str]:
    return setting[Across.SETTINGS].split(_PARTS)


def _setting(manifest: Manifest) -> Mapping[Across, str]:
    given = [manifest.profile, f"load {manifest.load:g}" if manifest.load else ""]
    given += [f"marker {manifest.marker}" if manifest.marker else ""]
    given += [f"{name} {value}" for of in (manifest.job, manifest.client) for name, value in sorted(of.items())]
    engine = (manifest.engine, manifest.accelerator.partition(" ")[0], manifest.datapath)
    return {
        Across.DRILL: manifest.drill,
        Across.FABRIC: f"{manifest.fabric} ({manifest.architecture})",
        Across.ENGINE: "/".join(filter(None, engine)),
        Across.KERNEL: manifest.kernel,
        Across.SETTINGS: _PARTS.join(filter(None, given)),
        Across.VERSION: _version(manifest),
    }


def _version(manifest: Manifest) -> str:
    """'0.1.0 796fe22c1d2a-dirty': every commit is another version; files that differed from it are one more."""
    commit, dash, changed = manifest.commit.partition("-")
    return " ".join(filter(None, (manifest.versions.get("hpn", ""), f"{commit[:_COMMIT]}{dash}{changed}")))
