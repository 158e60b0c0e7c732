"""Why a job may have suffered: what the faults left of the ways between its NICs. Standard library only.

What a job sends is no constant rate, so that losses cannot be laid to flows; what must hold is told by the fabric: who
had no way at all, who needed path control and had none, and whose LAG had fewer ports than before.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.strangers.oracle.faults import spans
from tests.strangers.oracle.judge import DETECTION, NO_CONTROL, NO_PATH
from tests.strangers.oracle.network import Network

FEWER = "fewer ports or uplinks"


def hardships(run: Path) -> set[str]:
    """Every cause that holds for a queue pair of the job at some time; none: nothing stood in its way."""
    network, drill = Network.read(run), json.loads((run / "drill.json").read_text())
    messages = json.loads((run / "series.json").read_text())["messages"]
    found: set[str] = set()
    for span in spans(network, drill, messages["bins"]["start_ns"]):
        for pair in messages["flows"]:
            found |= _of(network, pair["src_nic"], pair["dst_nic"], span.links)
        found |= {DETECTION} if span.found_ns else set()
    return found


def _of(network: Network, src: str, dst: str, dead: frozenset[str]) -> set[str]:
    if not network.has_way(src, dst, dead) or not network.has_way(dst, src, dead):
        return {NO_PATH}
    ends = (src, dst), (dst, src)
    lost = [name for a, _ in ends for name in network.ports[a] if name in dead]
    gone = any(
        name not in dead and not network.has_way(a, b, dead, port)
        for a, b in ends
        for port, name in enumerate(network.ports[a])
    )
    control = network.spec["path_control"]
    uncontrolled = gone and not (control["enabled"] and control["policy"] != "off")
    tors = {network.links[name].ends[1] for a, _ in ends for name in network.ports[a]}
    uplinks = any(link.name in dead for tor in tors for link in network.links_of(tor))
    return ({NO_CONTROL} if uncontrolled else set()) | ({FEWER} if lost or gone or uplinks else set())
