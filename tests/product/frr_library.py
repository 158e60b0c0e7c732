"""The drills of the library with FRR in the place of BIRD, as files, and a suite of them: ``make frr``.

Left out are the one with BFD, which FRR is refused, and those of labs that are run alone. Cores hash, as FRR does not
fill the tables of their preset ports.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import yaml

from hpn.scenarios.drill import catalogue
from hpn.scenarios.run import client_site
from hpn.testbed.fabric.presets import PRESETS

_TOPOLOGY = re.compile(r"^topology:( .*|(?:\n .*)+)$", re.MULTILINE)
_SUITE = """\
suite: frr
summary: every drill of the library with FRR in the place of BIRD
runs:
  - drills: [{drills}]
    engines: [uml-virtual-time]
"""


def names() -> tuple[str, ...]:
    """The drills that FRR can be asked to carry."""
    drills = ((name, catalogue.load(name)) for name in catalogue.names())
    return tuple(name for name, drill in drills if drill.topology.bgp.bfd is None and client_site.alone(drill) is None)


def write(name: str, folder: Path) -> Path:
    """The drill of that name with FRR, as a file of its own."""
    path = folder / f"{name}.yaml"
    path.write_text(_TOPOLOGY.sub(_changed, catalogue.find(name).read_text()))
    return path


def _changed(found: re.Match[str]) -> str:
    """The topology on as many lines: what stands below keeps its line."""
    return f"topology: {_with_frr(found[1])}" + "\n" * found[1].count("\n")


def _with_frr(topology: str) -> str:
    given = yaml.safe_load(topology)
    changed: dict[str, object] = {"preset": given} if isinstance(given, str) else dict(given)
    bgp = changed.get("bgp")
    changed["bgp"] = {**(bgp if isinstance(bgp, dict) else {}), "daemon": "frr"}
    cores = PRESETS[str(changed["preset"])].spec.cores if "preset" in changed else changed.get("cores", 0)
    if cores:
        changed["core_ports"] = "hash"
    return json.dumps(changed)


def main(folder: Path) -> None:
    """Write the drills and their suite."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [write(name, folder).name for name in names()]
    (folder / "suite.yaml").write_text(_SUITE.format(drills=", ".join(files)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
