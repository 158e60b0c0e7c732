"""Imports by the former names of hpn's packages, before they moved into ``hpn``, for old plug-ins.

``from failover.faults import FAULTS`` gives ``hpn.failover.faults``, the same module. A third-party module of such a
name is left alone.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from hpn.testbed.package import FOLDER, PACKAGES

_MOVED = {
    "results.ci": "results.export.ci",
    "results.citation": "results.export.citation",
    "results.ground_truth": "results.judge.ground_truth",
    "results.junit": "results.export.junit",
    "results.junit_xml": "results.export.junit_xml",
    "results.markdown": "results.export.markdown",
    "results.repeats": "results.judge.repeats",
    "results.verdict": "results.judge.verdict",
    "scenarios.bench": "scenarios.selfcheck.bench",
    "scenarios.month": "scenarios.model.month",
    "scenarios.pool": "scenarios.batch.pool",
    "scenarios.selftest": "scenarios.selfcheck.selftest",
    "scenarios.suite": "scenarios.batch.suite",
    "testbed.kernel.buffers": "testbed.kernel.packets.buffers",
    "testbed.kernel.capture": "testbed.kernel.packets.capture",
    "testbed.kernel.capturing": "testbed.kernel.packets.capturing",
    "testbed.kernel.confined": "testbed.kernel.process.confined",
    "testbed.kernel.confining": "testbed.kernel.process.confining",
    "testbed.kernel.echo": "testbed.kernel.packets.echo",
    "testbed.kernel.htb": "testbed.kernel.rtnetlink.htb",
    "testbed.kernel.netlink": "testbed.kernel.rtnetlink.netlink",
    "testbed.kernel.nft": "testbed.kernel.nftables.nft",
    "testbed.kernel.nftcounters": "testbed.kernel.nftables.counters",
    "testbed.kernel.nftrules": "testbed.kernel.nftables.rules",
    "testbed.kernel.open_files": "testbed.kernel.process.open_files",
    "testbed.kernel.packet": "testbed.kernel.packets.packet",
    "testbed.kernel.packet_batch": "testbed.kernel.packets.packet_batch",
    "testbed.kernel.pcapng": "testbed.kernel.packets.pcapng",
    "testbed.kernel.pcapng_reading": "testbed.kernel.packets.pcapng_reading",
    "testbed.kernel.priority": "testbed.kernel.process.priority",
    "testbed.kernel.processes": "testbed.kernel.process.processes",
    "testbed.kernel.programs": "testbed.kernel.process.programs",
    "testbed.kernel.qdisc": "testbed.kernel.rtnetlink.qdisc",
    "testbed.kernel.rdma": "testbed.kernel.softroce.rdma",
    "testbed.kernel.red": "testbed.kernel.rtnetlink.red",
    "testbed.kernel.rtnl": "testbed.kernel.rtnetlink.rtnl",
    "testbed.kernel.rtnl_events": "testbed.kernel.rtnetlink.rtnl_events",
    "testbed.kernel.sandbox": "testbed.kernel.process.sandbox",
    "testbed.kernel.soft_roce": "testbed.kernel.softroce.soft_roce",
    "testbed.kernel.survivor": "testbed.kernel.process.cleanup_process",
    "testbed.kernel.sysfs": "testbed.kernel.process.sysfs",
    "traffic.columns": "traffic.streams.columns",
    "traffic.engine": "traffic.streams.engine",
    "traffic.flow": "traffic.flows.flow",
    "traffic.flowlevel": "traffic.fluid",
    "traffic.foreign": "traffic.tools.foreign",
    "traffic.framing": "traffic.flows.framing",
    "traffic.gaps": "traffic.streams.gaps",
    "traffic.iperf": "traffic.tools.iperf",
    "traffic.messages": "traffic.workers.messages",
    "traffic.mmsg": "traffic.io.mmsg",
    "traffic.pacing": "traffic.streams.pacing",
    "traffic.paths": "traffic.flows.paths",
    "traffic.patterns": "traffic.flows.patterns",
    "traffic.placement": "traffic.workers.placement",
    "traffic.pool": "traffic.workers.pool",
    "traffic.process": "traffic.workers.process",
    "traffic.qp": "traffic.streams.qp",
    "traffic.rc": "traffic.transport",
    "traffic.rdma": "traffic.jobengine",
    "traffic.receiver": "traffic.streams.receiver",
    "traffic.recordfile": "traffic.streams.recordfile",
    "traffic.records": "traffic.streams.records",
    "traffic.recvmmsg": "traffic.io.recvmmsg",
    "traffic.responders": "traffic.streams.receiver",
    "traffic.ringmsg": "traffic.io.ringmsg",
    "traffic.sender": "traffic.streams.sender",
    "traffic.sendmmsg": "traffic.io.sendmmsg",
    "traffic.served": "traffic.workers.worker_main",
    "traffic.sockets": "traffic.io.sockets",
    "traffic.sockperf": "traffic.tools.sockperf",
    "traffic.spraying": "traffic.flows.spraying",
    "traffic.uring": "traffic.io.uring",
    "traffic.wire": "traffic.streams.wire",
    "traffic.worker": "traffic.streams.worker",
}
"""Modules that have moved within ``hpn``."""


class OldNames(MetaPathFinder, Loader):
    """Finder of our modules by their former names, which keeps Python from loading the same file twice."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec as Python requests it; None for modules that are not ours."""
        package, _, below = fullname.partition(".")
        if package not in PACKAGES:
            return None
        ours = sys.modules[package].__name__ == f"hpn.{package}" if below else _is_ours(package)
        return ModuleSpec(fullname, self) if ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module by its current name."""
        module = importlib.import_module(f"hpn.{_today(spec.name)}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing but restore the spec: the module has run already, and Python has set the old name."""
        old = module.__spec__
        module.__spec__ = None if old is None else old.loader_state


def _today(name: str) -> str:
    """Return the current name: 'traffic.flows.patterns' for 'traffic.patterns'."""
    old = next((old for old in _MOVED if name == old or name.startswith(f"{old}.")), None)
    return name if old is None else f"{_MOVED[old]}{name.removeprefix(old)}"


def _is_ours(package: str) -> bool:
    """Return True if no third-party package of that name comes first; in a checkout ours itself is on Python's path."""
    spec = PathFinder.find_spec(package)
    places = () if spec is None else spec.submodule_search_locations or (str(spec.origin),)
    return all(Path(place).resolve() == (FOLDER / package).resolve() for place in places)


def accept() -> None:
    """Enable the former names in this process."""
    if not any(isinstance(each, OldNames) for each in sys.meta_path):
        sys.meta_path.insert(0, OldNames())
