"""Last output of a lab's process, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.package import ROOT


def last_words(lines: Sequence[str]) -> str:
    """Return the last output of a process, with the place in hpn's source if it ends in a traceback."""
    said = [line.strip() for line in lines if line.strip()]
    said = [line for line in said if not line.startswith("hpn: this is a mistake")] or said
    places = [line for line in said if line.startswith(f'File "{ROOT}') and "/site-packages/" not in line]
    place = places[-1].removeprefix(f'File "{ROOT}/').replace('", line ', ":") if places else ""
    last = said[-1] if said else "it said nothing"
    return f"{last} (at {place})" if place else last
