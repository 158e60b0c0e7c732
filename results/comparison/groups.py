"""Groups of runs that may be summarised together, and the differences between groups. Pure.

Changes when runs are grouped by another rule. ``results.run.identity`` defines an experiment: a digest decides, and a
name only if the folder of an older hpn has no data for a digest. A median over two experiments describes neither:
link-down on HPN and on single-ToR together would be "275 ms", the middle of 0 and 549.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from hpn.failover.analysis.model import DrillMetrics
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.run.identity import UNKNOWN, Identity, all_settings, differences, sets_apart
from hpn.results.run.manifest import Manifest
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import shorten


class Across(StrEnum):
    """Differences between runs that can be requested; the value is the argument of ``--across``, and names a digest."""

    DRILL = "drill"
    FABRIC = "fabric"
    ENGINE = "engine"  # with its kernel and LAG datapath
    KERNEL = "kernel"
    SETTINGS = "settings"  # profile, traffic, marker, job, client
    VERSION = "version"  # of hpn, with its commit: may always differ, and is always shown


_BRINGS: Mapping[Across, Collection[Across]] = {
    Across.DRILL: (Across.SETTINGS,),
    Across.ENGINE: (Across.KERNEL,),
}
"""Implied differences: another drill has other settings, another engine its own kernel."""
WITH_DIGEST = (Across.DRILL, Across.FABRIC, Across.SETTINGS)
LEAST = 2
"""Minimum runs of each group for a comparison; a single run has no spread."""
Name = TypeVar("Name", bound=str)
_PARTS = ", "
_LONGEST = 400
_MOST_PARTS = 3
"""Maximum settings in a label; the table of groups has all."""
_COMMIT = 12
"""Digits of a commit that are shown."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One run, with the folder that names it."""

    folder: str
    manifest: Manifest
    metrics: DrillMetrics
    verdict: Verdict
    identity: Identity = UNKNOWN
    name: str = ""  # of its group, if given on the command line


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one experiment. ``runs`` are those that can be trusted; ``left_out`` is the number of the others.

    ``setting``: in words, from its first run. ``digests``: those known; ``told``: the settings behind them.
    """

    label: str
    setting: Mapping[Across, str]
    runs: tuple[Compared, ...]
    left_out: int
    digests: Mapping[Across, str]
    told: Mapping[str, str]
    is_merged: bool = False  # of several drills

    @property
    def by_name(self) -> Sequence[Across]:
        """Settings that only names identify."""
        return [what for what in WITH_DIGEST if what not in self.digests]

    @property
    def words(self) -> Mapping[str, str]:
        """Settings, including all of a job or a client: ``told`` omits those of a policy."""
        return self.told if self.is_merged or not self.runs else all_settings(self.told, self.runs[0].manifest)


def merged(of_drills: Sequence[Sequence[Group]]) -> tuple[Group, ...]:
    """Return the groups of several drills by label, with the settings that each has in all of its drills."""
    by_label: dict[str, list[Group]] = {}
    for groups in of_drills:
        for group in groups:
            by_label.setdefault(group.label, []).append(group)
    return tuple(_merged(label, of) for label, of in by_label.items())


def _merged(label: str, of: Sequence[Group]) -> Group:
    runs = tuple(run for group in of for run in group.runs)
    told = _shared([group.words for group in of])
    digests = {what: "" for what in of[0].digests if all(what in group.digests for group in of)}  # which are whole
    setting = {what: _in_all([group.setting[what] for group in of], what) for what in Across}
    return Group(label, setting, runs, sum(group.left_out for group in of), digests, told, is_merged=True)


def _in_all(values: Sequence[str], what: Across) -> str:
    distinct = dict.fromkeys(values)
    if what is Across.DRILL:
        return f"{len(distinct)} drills"
    if len(distinct) == 1 or what is not Across.SETTINGS:
        return " | ".join(distinct)
    parts = [value.split(_PARTS) for value in distinct]
    return _PARTS.join(part for part in parts[0] if all(part in each for each in parts))


def _shared(of: Sequence[Mapping[Name, str]]) -> Mapping[Name, str]:
    first, *others = of
    return {key: value for key, value in first.items() if all(each.get(key) == value for each in others)}


def asked_otherwise(one: Group, other: Group) -> str:
    """Return the settings that differ: 'job.queue_pairs: 1 | 8', joined by ';'. '' if none is known."""
    if bool(one.told) is not bool(other.told):
        return ""
    return differences(one.words, other.words)


def apart_in(groups: Sequence[Group]) -> Sequence[str]:
    """Return for each group the parts of its settings that not all groups share."""
    parts = [_parts(group.setting) for group in groups]
    common = set.intersection(*map(set, parts))
    return [_PARTS.join(part for part in each if part not in common) for each in parts]


def grouped(runs: Iterable[Compared], across: Collection[Across]) -> tuple[Group, ...]:
    """Return groups in the order of their first runs. InputError if they differ in something not in ``across``."""
    found: dict[tuple[tuple[str, ...], str], list[Compared]] = {}
    for run in runs:
        setting, digests = _setting(run.manifest), _digests(run)
        key = tuple(digests.get(what, setting[what]) for what in Across)
        found.setdefault((key, run.name), []).append(run)
    firsts, keys = [of[0] for of in found.values()], [key for key, _ in found]
    differ = [what for at, what in enumerate(Across) if len({key[at] for key in keys}) > 1]
    _check(differ, across, firsts, [dict(zip(Across, key, strict=True)) for key in keys])
    labels = _named(firsts, [*_labels(firsts, differ)])
    return tuple(_group(label, of) for label, of in zip(labels, found.values(), strict=True))


def check_trusted(groups: Iterable[Group]) -> None:
    """Raise InputError for a group without a run that can be trusted, as it has no figures."""
    for group in groups:
        if not group.runs and group.left_out == 1:
            raise InputError(f"the only run of {group.label} cannot be trusted: it is inconclusive")
        if not group.runs:
            raise InputError(
                f"none of the {group.left_out} runs of {group.label} can be trusted: they are inconclusive"
            )


def why_not(groups: Sequence[Group]) -> str:
    """Return why groups cannot be compared; '' if they can."""
    few = [f"{group.label} has {len(group.runs)}" for group in groups if len(group.runs) < LEAST]
    if len(groups) < LEAST:
        return "there is one group"
    return f"it takes {LEAST} trusted runs of each group (--repeat), and {', '.join(few)}" if few else ""


def _check(
    differ: Sequence[Across],
    across: Collection[Across],
    firsts: Sequence[Compared],
    keys: Sequence[Mapping[Across, str]],
) -> None:
    allowed = {*across, Across.VERSION, *(brought for what in across for brought in _BRINGS.get(what, ()))}
    refused = [what for what in differ if what not in allowed]
    brought = {each for what in refused for each in _BRINGS.get(what, ())}
    if refused:
        ways_out = " ".join(f"--across {what}" for what in refused if what not in brought)
        what = refused[0]
        drills = dict.fromkeys(run.manifest.drill for run in firsts)
        if what is Across.DRILL and len(drills) > 1:
            raise InputError(_of_several_drills(drills, firsts, ways_out))
        other = next(run for run, key in zip(firsts, keys, strict=True) if key[what] != keys[0][what])
        names = sorted({_setting(run.manifest)[what] for run in firsts})
        told = [" | ".join(names[:4])] if len(names) > 1 else []
        told += filter(None, [differences(firsts[0].identity.told, other.identity.told)])
        values = shorten("; ".join(told) or "one folder tells it whole, another by name", _LONGEST, quoted=False)
        raise InputError(
            f"these runs differ in their {what} ({values}), so that a difference would not be"
            f" that of one cause; leave some out, or write {ways_out}"
        )


def _of_several_drills(drills: Iterable[str], firsts: Sequence[Compared], ways_out: str) -> str:
    """Return the drills, and the two possible fixes, in one line."""
    names = shorten(", ".join(drills), _LONGEST, quoted=False)
    folder = shorten(firsts[0].folder, _LONGEST, quoted=False)
    return (
        f"these runs are of {len({*drills})} drills ({names}), which have no common median; name the folders of one"
        f" drill, as {folder}, or write {ways_out}"
    )


def _group(label: str, runs: Sequence[Compared]) -> Group:
    trusted = tuple(run for run in runs if run.verdict.outcome is not Outcome.INCONCLUSIVE or not run.verdict.doubts)
    first = runs[0]
    setting, digests = _setting(first.manifest), _digests(first)
    return Group(label, setting, trusted, len(runs) - len(trusted), digests, first.identity.told)


def _named(firsts: Sequence[Compared], labels: Sequence[str]) -> Iterator[str]:
    """Yield the names from the command line, extended where several groups share a name."""
    names = [run.name for run in firsts]
    texts = [
        name if name and names.count(name) == 1 else " ".join(filter(None, (name, label)))
        for name, label in zip(names, labels, strict=True)
    ]
    for at, text in enumerate(texts, start=1):
        yield text if texts.count(text) == 1 else f"{text} group {at}"


def _labels(firsts: Sequence[Compared], differ: Sequence[Across]) -> Iterator[str]:
    """Yield the shortest labels that distinguish the groups: names, parts of settings, else single keys."""
    settings = [_setting(run.manifest) for run in firsts]
    brought = {each for what in differ for each in _BRINGS.get(what, ())}
    told = [what for what in differ if what not in brought]
    common = set.intersection(*(set(_parts(setting)) for setting in settings))
    named = [what for what in told if len({setting[what] for setting in settings}) > 1 and what is not Across.SETTINGS]
    labels = [[setting[what] for what in named] for setting in settings]
    if Across.SETTINGS in told:
        own = [_few([p for p in _parts(setting) if p not in common]) for setting in settings]
        labels = [[*of, *parts] for of, parts in zip(labels, own, strict=True)]
    if len({tuple(words) for words in labels}) < len(labels):
        apart = sets_apart([run.identity.told for run in firsts])
        labels = [[*words, more] for words, more in zip(labels, apart, strict=True)]
    texts = [_PARTS.join(filter(None, words)) for words in labels]
    for at, text in enumerate(texts, start=1):
        if len(texts) == 1:
            yield text or settings[0][Across.DRILL]
        else:
            yield text if text and texts.count(text) == 1 else " ".join(filter(None, (text, f"group {at}")))


def shortened(setting: str) -> str:
    """Return the first few settings, and the number of others."""
    return _PARTS.join(_few(setting.split(_PARTS)))


def _few(parts: Sequence[str]) -> Sequence[str]:
    more = len(parts) - _MOST_PARTS
    return [*parts[:_MOST_PARTS], f"and {more} more"] if more > 0 else parts


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
        Across.VERSION: version_of(manifest),
    }


def _digests(run: Compared) -> Mapping[Across, str]:
    """Return the digests; the marker, which ``auto`` leaves to the machine, is added to that of the settings."""
    found = {what: run.identity.digests[what] for what in WITH_DIGEST if what in run.identity.digests}
    if Across.SETTINGS in found and run.manifest.marker:
        found[Across.SETTINGS] += f" {run.manifest.marker}"
    return found


def version_of(manifest: Manifest) -> str:
    """Return the version: '0.1.0 796fe22c1d2a-dirty'. Every commit is another version; so are uncommitted changes."""
    commit, dash, changed = manifest.commit.partition("-")
    return " ".join(filter(None, (manifest.versions.get("hpn", ""), f"{commit[:_COMMIT]}{dash}{changed}")))
