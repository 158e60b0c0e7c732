"""The result of an import: the topology file, and what was taken, left and renamed as lines and as data. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hpn.testbed.fabric.wired.text import wiring_lines
from hpn.testbed.files.document import Plain, shorten
from hpn.testbed.importing.found import Left
from hpn.testbed.importing.importer import Imported
from hpn.testbed.importing.mistakes import listed

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


def topology_text(result: Imported, sources: Sequence[str]) -> str:
    """Return the text of a topology file; ``sources`` are the names of the imported files."""
    names = listed([shorten(name, 100, quoted=False) for name in sources])
    lines = [f"# Imported from {names}. hpn plan FILE checks it; all keys: docs/your-network.md"]
    if result.name is not None and _NAME.fullmatch(result.name):
        lines.append(f"name: {result.name}")
    lines.append("architecture: wired")
    if result.has_asns:
        lines.append("bgp: {asn: per-switch}  # switches have AS numbers of their own")
    return "\n".join((*lines, *wiring_lines(result.wiring), ""))


def told(result: Imported) -> Iterator[str]:
    """Yield a line for what was taken, and one for each kind of thing that was left or renamed."""
    roles = ", ".join(f"{count} {role}" for role, count in result.roles.items())
    yield f"taken: {roles}; {len(result.wiring.links)} links{_details(result)}"
    for note in result.notes:
        yield f"  {note}"
    for each in result.left:
        yield f"left: {_told_left(each)}"
    if result.renamed:
        names = [f"{each.node}:{each.old} is {each.new}" for each in result.renamed]
        yield f"renamed: {len(names)} interfaces that Linux cannot have: {listed(names, 3)}"


def as_data(result: Imported) -> dict[str, Plain]:
    """Return the same in full, as data for JSON."""
    return {
        "taken": {"roles": dict(result.roles), "links": len(result.wiring.links), "notes": list(result.notes)},
        "left": [
            {
                "what": each.what,
                "why": each.why,
                "names": list(each.names),
                "place": None if each.place is None else str(each.place),
            }
            for each in result.left
        ],
        "renamed": [{"node": each.node, "old": each.old, "new": each.new} for each in result.renamed],
    }


def _details(result: Imported) -> str:
    """Return what of the optional things the files had: '; links with rates: 4'."""
    nodes, links = result.wiring.nodes.values(), result.wiring.links
    counted = {
        "hosts with NICs named": sum(bool(node.nics) for node in nodes),
        "switches with AS numbers": sum(node.asn is not None for node in nodes),
        "switches with a configuration": sum(node.config is not None for node in nodes),
        "links with rates": sum(link.rate is not None for link in links),
        "links with addresses": sum(link.addresses is not None for link in links),
    }
    return "".join(f"; {text}: {count}" for text, count in counted.items() if count)


def _told_left(left: Left) -> str:
    place = f" ({left.place})" if left.place is not None else ""
    names = f" {listed(left.names)}" if left.names else ""
    return f"{left.what}{names}{place}: {left.why}"
