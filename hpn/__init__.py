"""hpn for scripts: plan fabrics, run drills, read what they measured, and work on a lab, from Python.

    from hpn import load_drill, run
    found = run(load_drill("link-down"), "runs/one")
    print(found.verdict().outcome, found.metrics().edges[0].worst_outage_plbm_ms)

Everything a script needs is here by name and is imported when it is asked for; docs/api.md has an example. Other
modules (``testbed``, ``scenarios``, ...) are how hpn is built, and change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from failover.analysis.model import DrillMetrics as DrillMetrics
    from failover.faults import FAULTS as FAULTS
    from failover.inject.levers import LabLevers as LabLevers
    from hpn.api import analyse as analyse
    from hpn.api import compare as compare
    from hpn.api import load_run as load_run
    from hpn.api import on_lab as on_lab
    from hpn.api import run as run
    from results.graph.dot import fabric_dot as fabric_dot
    from results.graph.overlay import Mark as Mark
    from results.graph.overlay import Overlay as Overlay
    from results.graph.svg import fabric_svg as fabric_svg
    from results.run.folder import RunFolder as RunFolder
    from results.run.metrics import metrics_from_dict as metrics_from_dict
    from results.run.metrics import metrics_to_dict as metrics_to_dict
    from results.tables.frames import frames as frames
    from results.verdict import Outcome as Outcome
    from results.verdict import Verdict as Verdict
    from scenarios.drill.catalogue import load as load_drill
    from scenarios.drill.catalogue import names as drills
    from scenarios.drill.model import Drill as Drill
    from scenarios.expect.metrics import METRICS as METRICS
    from testbed.errors import HpnError as HpnError
    from testbed.errors import InputError as InputError
    from testbed.errors import MachineError as MachineError
    from testbed.errors import NoisyError as NoisyError
    from testbed.fabric.architectures import ARCHITECTURES as ARCHITECTURES
    from testbed.fabric.build import build as build
    from testbed.fabric.inventory import inventory as inventory
    from testbed.fabric.load import load_fabric as load_fabric
    from testbed.fabric.model import Fabric as Fabric
    from testbed.fabric.presets import PRESETS as PRESETS
    from testbed.fabric.spec import FabricSpec as FabricSpec
    from testbed.lab.lab import Lab as Lab
    from testbed.lag.datapaths import DATAPATHS as DATAPATHS
    from testbed.routing.daemons import DAEMONS as DAEMONS
    from testbed.routing.pathcontrol.policies import PATH_POLICIES as PATH_POLICIES
    from testbed.versions import HPN as __version__
    from testbed.vm.engines import ENGINES as ENGINES
    from traffic.client.registry import CLIENTS as CLIENTS
    from traffic.paths import CHOICES as SOURCE_PORTS
    from traffic.patterns import PATTERNS as PATTERNS

_PLACES = {
    "ARCHITECTURES": "testbed.fabric.architectures",
    "CLIENTS": "traffic.client.registry",
    "DAEMONS": "testbed.routing.daemons",
    "DATAPATHS": "testbed.lag.datapaths",
    "Drill": "scenarios.drill.model",
    "DrillMetrics": "failover.analysis.model",
    "ENGINES": "testbed.vm.engines",
    "FAULTS": "failover.faults",
    "Fabric": "testbed.fabric.model",
    "FabricSpec": "testbed.fabric.spec",
    "HpnError": "testbed.errors",
    "InputError": "testbed.errors",
    "Lab": "testbed.lab.lab",
    "LabLevers": "failover.inject.levers",
    "METRICS": "scenarios.expect.metrics",
    "MachineError": "testbed.errors",
    "NoisyError": "testbed.errors",
    "Mark": "results.graph.overlay",
    "Outcome": "results.verdict",
    "Overlay": "results.graph.overlay",
    "PATH_POLICIES": "testbed.routing.pathcontrol.policies",
    "PATTERNS": "traffic.patterns",
    "PRESETS": "testbed.fabric.presets",
    "RunFolder": "results.run.folder",
    "SOURCE_PORTS": "traffic.paths:CHOICES",
    "Verdict": "results.verdict",
    "__version__": "testbed.versions:HPN",
    "analyse": "hpn.api",
    "build": "testbed.fabric.build",
    "compare": "hpn.api",
    "drills": "scenarios.drill.catalogue:names",
    "fabric_dot": "results.graph.dot",
    "fabric_svg": "results.graph.svg",
    "frames": "results.tables.frames",
    "inventory": "testbed.fabric.inventory",
    "load_drill": "scenarios.drill.catalogue:load",
    "load_fabric": "testbed.fabric.load",
    "load_run": "hpn.api",
    "metrics_from_dict": "results.run.metrics",
    "metrics_to_dict": "results.run.metrics",
    "on_lab": "hpn.api",
    "run": "hpn.api",
}
"""Where each name comes from; behind a colon the name it has there, when that is another."""

__all__ = [
    "ARCHITECTURES",
    "CLIENTS",
    "DAEMONS",
    "DATAPATHS",
    "ENGINES",
    "FAULTS",
    "METRICS",
    "PATH_POLICIES",
    "PATTERNS",
    "PRESETS",
    "SOURCE_PORTS",
    "Drill",
    "DrillMetrics",
    "Fabric",
    "FabricSpec",
    "HpnError",
    "InputError",
    "Lab",
    "LabLevers",
    "MachineError",
    "Mark",
    "NoisyError",
    "Outcome",
    "Overlay",
    "RunFolder",
    "Verdict",
    "__version__",
    "analyse",
    "build",
    "compare",
    "drills",
    "fabric_dot",
    "fabric_svg",
    "frames",
    "inventory",
    "load_drill",
    "load_fabric",
    "load_run",
    "metrics_from_dict",
    "metrics_to_dict",
    "on_lab",
    "run",
]


def __getattr__(name: str) -> object:
    """Import what is asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module 'hpn' has no {name!r}; it has {', '.join(__all__)}")
    module, _, there = _PLACES[name].partition(":")
    return getattr(import_module(module), there or name)


def __dir__() -> list[str]:
    """What is here."""
    return list(__all__)
