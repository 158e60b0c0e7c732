"""hpn for scripts: plan fabrics, run drills, read their results and work on a lab, from Python.

    from hpn import load_drill, run
    found = run(load_drill("link-down"), "runs/one")
    print(found.verdict().outcome, found.metrics().edges[0].worst_outage_plbm_ms)

Every name that a script needs is available here and is imported on first use; docs/api.md has an example. Other
modules (``testbed``, ``scenarios``, ...) are internal and may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpn.api import analyse as analyse
    from hpn.api import compare as compare
    from hpn.api import load_run as load_run
    from hpn.api import on_lab as on_lab
    from hpn.api import run as run
    from hpn.failover.analysis.model import DrillMetrics as DrillMetrics
    from hpn.failover.faults import FAULTS as FAULTS
    from hpn.failover.inject.lab_actions import LabActions as LabActions
    from hpn.results.graph.dot import fabric_dot as fabric_dot
    from hpn.results.graph.overlay import Mark as Mark
    from hpn.results.graph.overlay import Overlay as Overlay
    from hpn.results.graph.svg import fabric_svg as fabric_svg
    from hpn.results.judge.verdict import Outcome as Outcome
    from hpn.results.judge.verdict import Verdict as Verdict
    from hpn.results.run.folder import RunFolder as RunFolder
    from hpn.results.run.metrics import metrics_from_dict as metrics_from_dict
    from hpn.results.run.metrics import metrics_to_dict as metrics_to_dict
    from hpn.results.tables.frames import frames as frames
    from hpn.scenarios.drill.catalogue import load as load_drill
    from hpn.scenarios.drill.catalogue import names as drills
    from hpn.scenarios.drill.model import Drill as Drill
    from hpn.scenarios.expect.metrics import METRICS as METRICS
    from hpn.testbed.errors import HpnError as HpnError
    from hpn.testbed.errors import InputError as InputError
    from hpn.testbed.errors import MachineError as MachineError
    from hpn.testbed.errors import NoisyError as NoisyError
    from hpn.testbed.fabric.architectures import ARCHITECTURES as ARCHITECTURES
    from hpn.testbed.fabric.build import build as build
    from hpn.testbed.fabric.inventory import inventory as inventory
    from hpn.testbed.fabric.load import load_fabric as load_fabric
    from hpn.testbed.fabric.model import Fabric as Fabric
    from hpn.testbed.fabric.presets import PRESETS as PRESETS
    from hpn.testbed.fabric.spec import FabricSpec as FabricSpec
    from hpn.testbed.lab.lab import Lab as Lab
    from hpn.testbed.lag.datapaths import DATAPATHS as DATAPATHS
    from hpn.testbed.routing.daemons import DAEMONS as DAEMONS
    from hpn.testbed.routing.pathcontrol.policies import PATH_POLICIES as PATH_POLICIES
    from hpn.testbed.versions import HPN as __version__
    from hpn.testbed.vm.engines import ENGINES as ENGINES
    from hpn.traffic.client.registry import CLIENTS as CLIENTS
    from hpn.traffic.flows.paths import CHOICES as SOURCE_PORTS
    from hpn.traffic.flows.patterns import PATTERNS as PATTERNS

_PLACES = {
    "ARCHITECTURES": "hpn.testbed.fabric.architectures",
    "CLIENTS": "hpn.traffic.client.registry",
    "DAEMONS": "hpn.testbed.routing.daemons",
    "DATAPATHS": "hpn.testbed.lag.datapaths",
    "Drill": "hpn.scenarios.drill.model",
    "DrillMetrics": "hpn.failover.analysis.model",
    "ENGINES": "hpn.testbed.vm.engines",
    "FAULTS": "hpn.failover.faults",
    "Fabric": "hpn.testbed.fabric.model",
    "FabricSpec": "hpn.testbed.fabric.spec",
    "HpnError": "hpn.testbed.errors",
    "InputError": "hpn.testbed.errors",
    "Lab": "hpn.testbed.lab.lab",
    "LabActions": "hpn.failover.inject.lab_actions",
    "METRICS": "hpn.scenarios.expect.metrics",
    "MachineError": "hpn.testbed.errors",
    "NoisyError": "hpn.testbed.errors",
    "Mark": "hpn.results.graph.overlay",
    "Outcome": "hpn.results.judge.verdict",
    "Overlay": "hpn.results.graph.overlay",
    "PATH_POLICIES": "hpn.testbed.routing.pathcontrol.policies",
    "PATTERNS": "hpn.traffic.flows.patterns",
    "PRESETS": "hpn.testbed.fabric.presets",
    "RunFolder": "hpn.results.run.folder",
    "SOURCE_PORTS": "hpn.traffic.flows.paths:CHOICES",
    "Verdict": "hpn.results.judge.verdict",
    "__version__": "hpn.testbed.versions:HPN",
    "analyse": "hpn.api",
    "build": "hpn.testbed.fabric.build",
    "compare": "hpn.api",
    "drills": "hpn.scenarios.drill.catalogue:names",
    "fabric_dot": "hpn.results.graph.dot",
    "fabric_svg": "hpn.results.graph.svg",
    "frames": "hpn.results.tables.frames",
    "inventory": "hpn.testbed.fabric.inventory",
    "load_drill": "hpn.scenarios.drill.catalogue:load",
    "load_fabric": "hpn.testbed.fabric.load",
    "load_run": "hpn.api",
    "metrics_from_dict": "hpn.results.run.metrics",
    "metrics_to_dict": "hpn.results.run.metrics",
    "on_lab": "hpn.api",
    "run": "hpn.api",
}
"""Module that defines each name; after a colon the name it has there, if that differs."""

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
    "LabActions",
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
    """Import the module that defines ``name`` on first use."""
    if name not in _PLACES:
        raise AttributeError(f"module 'hpn' has no {name!r}; it has {', '.join(__all__)}")
    module, _, there = _PLACES[name].partition(":")
    return getattr(import_module(module), there or name)


def __dir__() -> list[str]:
    """Return the public names."""
    return list(__all__)
