"""Citation of hpn in a paper: BibTeX and CSL-JSON, with the provenance of the runs cited. Pure.

Changes when a reference has to say something more. CITATION.cff has the same data about hpn, and a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hpn.results.run.folder import RunFolder
from hpn.results.run.identity import DRILL, experiment_of, identity_in, sets_apart
from hpn.results.text.printable import printable

AUTHORS = "The hpn authors"
"""Authors, as in REUSE.toml."""
_LONGEST = 80
_YEAR = re.compile(r"[0-9]{4}(?=-)")
_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\textbraceleft{}",  # BibTeX counts braces behind a backslash too
    "}": r"\textbraceright{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{each: f"\\{each}" for each in "#$%&_"},
}


@dataclass(frozen=True, slots=True)
class Citation:
    """Content of a reference; all but title and version may be ''."""

    title: str
    version: str
    license: str
    note: str = ""
    year: str = ""  # in which the last of the runs was made; hpn by itself has none until it is released


@dataclass(frozen=True, slots=True)
class Made:
    """Provenance of a run: '' where its folder lacks it."""

    drill: str
    fabric: str
    version: str
    commit: str
    engine: str
    kernel: str
    digests: tuple[tuple[str, str], ...]  # of fabric, drill and settings, by name
    phase: int = 1  # as ``hpn drill run --phase`` takes it: seeds are drawn from it too
    year: str = field(default="", compare=False)
    told: Mapping[str, str] = field(default_factory=dict, compare=False)  # settings behind the digest

    def text(self, phases: Sequence[int], apart: str = "") -> str:
        """Return one sentence without a full stop, on one line; ``phases``: those of all runs with equal provenance.

        ``apart``: the keys that distinguish these runs from others that are cited with them.
        """
        version, commit, engine, kernel, digest = (
            _name(each) or "unknown"
            for each in (self.version, self.commit, self.engine, self.kernel, dict(self.digests).get(DRILL, ""))
        )
        experiment = experiment_of(dict(self.digests))
        of_all = f", experiment digest {experiment}" if experiment else ""
        own = f" ({_name(apart, 4 * _LONGEST)})" if apart else ""
        made = f"hpn {version} (commit {commit}), engine {engine}, kernel {kernel}, drill digest {digest}{of_all}{own}"
        runs, phase = ("run", "phase") if len(phases) == 1 else (f"{len(phases)} runs", "phases")
        of = f"{runs} of {_name(self.drill)} on {_name(self.fabric)} by {made}"
        return of if phases == [1] else f"{of}, {phase} {_ranges(phases)}"


def made_by(run: RunFolder) -> Made:
    """Return the provenance of a run. InputError if its manifest is damaged."""
    manifest = run.manifest()
    identity = identity_in(run, manifest)
    return Made(
        drill=manifest.drill,
        fabric=manifest.fabric,
        version=manifest.versions.get("hpn", ""),
        commit=manifest.commit,
        engine=manifest.engine,
        kernel=manifest.kernel,
        digests=tuple(sorted(identity.digests.items())),
        phase=manifest.phase,
        year=found[0] if (found := _YEAR.match(manifest.date)) else "",
        told=identity.told,
    )


def citation(summary: str, version: str, licence: str, runs: Sequence[Made] = ()) -> Citation:
    """Return the citation of hpn from its package data; with ``runs``, by their versions and with their provenance."""
    versions = sorted({_name(run.version) for run in runs if run.version}) or [version]
    alike: dict[Made, list[int]] = {}
    for run in runs:
        alike.setdefault(replace(run, phase=1), []).append(run.phase)
    keys = sets_apart([run.told for run in alike])
    note = "; ".join(run.text(sorted(of), apart) for (run, of), apart in zip(alike.items(), keys, strict=True))
    return Citation(f"hpn: {summary}", ", ".join(versions), licence, note, max((run.year for run in runs), default=""))


def bibtex(cited: Citation) -> str:
    """Return a BibTeX entry; names are escaped for TeX."""
    fields = {"author": AUTHORS, "title": cited.title, "year": cited.year}
    fields |= {"version": cited.version, "license": cited.license}
    whole = {"author", "title"}  # in braces of their own: one name, and capitals as they are
    lines = [
        f"  {name} = {{{{{_tex(value)}}}}}," if name in whole else f"  {name} = {{{_tex(value)}}},"
        for name, value in {**fields, "note": cited.note}.items()
        if value
    ]
    return "\n".join(["@software{hpn,", *lines, "}"])


def csl(cited: Citation) -> dict[str, object]:
    """Return an item of CSL-JSON, which has no field for a licence."""
    found: dict[str, object] = {
        "id": "hpn",
        "type": "software",
        "title": cited.title,
        "author": [{"literal": AUTHORS}],
        "version": cited.version,
    }
    if cited.year:
        found["issued"] = {"date-parts": [[int(cited.year)]]}
    return {**found, "note": cited.note} if cited.note else found


def _ranges(numbers: Sequence[int]) -> str:
    """Return ranges: '1 to 10', '1, 3 to 5'; ``numbers`` in order."""
    found: list[list[int]] = []
    for number in dict.fromkeys(numbers):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ", ".join(f"{each[0]} to {each[-1]}" if len(each) > 1 else str(each[0]) for each in found)


def _name(text: str, longest: int = _LONGEST) -> str:
    shown = printable(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def _tex(text: str) -> str:
    return "".join(_TEX.get(each, each) for each in text)
