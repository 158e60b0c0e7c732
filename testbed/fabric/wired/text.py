"""A wiring as the lines of a topology file, one per node and link. Pure.

Changes when files that hpn writes should show a wiring in another way. ``testbed.fabric.load`` reads the lines back.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.fabric.wired.wiring_spec import WiredLink, WiringSpec
from hpn.testbed.files.document import Plain
from hpn.testbed.files.one_line import one_line

_UNITS = (("T", 10**12), ("G", 10**9), ("M", 10**6), ("K", 10**3))


def wiring_lines(wiring: WiringSpec) -> Iterator[str]:
    """Yield ``wiring:`` and what is below it; defaults are left out."""
    yield "wiring:"
    yield "  nodes:"
    for name, node in wiring.nodes.items():
        yield f"    {one_line(name)}: {one_line(node.model_dump(exclude_defaults=True))}"
    yield "  links:"
    for link in wiring.links:
        yield f"    - {one_line(_link(link))}"
    if wiring.rails_meet is not None:
        yield f"  rails_meet: {one_line(wiring.rails_meet)}"
    if wiring.stacks:
        yield "  stacks:"
        for stack in wiring.stacks:
            yield f"    - {one_line(stack.model_dump())}"


def rate_text(rate_bps: int) -> str:
    """Format a rate as a topology file has it, such as 200G; exact, as ``parse_rate`` reads it."""
    unit, factor = next(((unit, factor) for unit, factor in _UNITS if rate_bps % factor == 0), ("", 1))
    return f"{rate_bps // factor}{unit}"


def _link(link: WiredLink) -> dict[str, Plain]:
    data: dict[str, Plain] = link.model_dump(exclude_defaults=True)
    if link.rate is not None:
        data["rate"] = rate_text(link.rate)
    return data
