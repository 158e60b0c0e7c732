"""Two fabrics, one fault: what path control saves when a NIC-ToR link is cut. Run: python compare_two.py [ENGINE]"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from hpn import Lab, RunFolder, inventory, load_drill, load_fabric, on_lab, run


async def _uplinks(lab: Lab) -> dict[str, int]:
    """Links of the converged lab that are up, by kind."""
    up = [link.kind.value for link in lab.fabric.links if lab.link_up(link.name)]
    return {kind: up.count(kind) for kind in sorted(set(up))}


def _worst_ms(found: RunFolder) -> float:
    """The longest outage of any flow at the cut."""
    return found.metrics().edges[0].worst_outage_plbm_ms


def main(engine: str = "uml-virtual-time") -> None:
    """Plan, look at a lab, run two drills, print."""
    fabric = load_fabric("tiny")
    found = inventory(fabric)
    print(f"{fabric.spec.name}: {found.hosts} hosts, {found.tors} ToRs, {found.aggs} Aggs")
    print(f"links up in a lab of it: {on_lab(fabric, _uplinks)}")
    with tempfile.TemporaryDirectory() as out:
        for name in ("link-down", "link-down-no-path-control"):
            made = run(load_drill(name), Path(out) / name, engine=engine)
            print(f"{name}: {made.verdict().outcome}, longest outage at the cut {_worst_ms(made):.2f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
