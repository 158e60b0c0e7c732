"""The drills that come with the product are right, short, and can be found."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.failover.faults import FAULTS
from hpn.scenarios.drill.catalogue import LIBRARY, find, load, ls, names
from hpn.scenarios.drill.describe import describe
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.expect.run_metrics import STATE_RESTORED
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build

RECOMMENDED_FLOWS = 16  # RFC 6414


@pytest.mark.parametrize("name", names())
def test_a_library_drill_is_right_and_called_as_its_file(name: str) -> None:
    drill = load(name)
    assert drill.name == name
    assert drill.description
    # LACP gives up in two steps of 3 s, bonding takes 2.5 s to come back; NCCL's port recovery waits twice for 5 s, and
    # a client's TCP doubles its timeout, so that it may sleep as long again as it could not get through.
    waits = drill.client is not None or (drill.job is not None and drill.job.port_recovery is not None)
    # Two drills outlast all of its attempts: 26 s without the link, and 24 s until a back-off finds it.
    outlasts = name in {"port-recovery-given-up", "port-recovery-backoff"}
    assert drill.timeline.end_ns <= (55 if outlasts else 16 if waits else 14) * 10**9
    assert drill.job is not None or len(flows_of(drill.workload, build(drill.topology))) >= RECOMMENDED_FLOWS
    assert any(e.metric is STATE_RESTORED for e in drill.expectations)


@pytest.mark.parametrize("name", [name for name in names() if load(name).job is None])
def test_the_traffic_of_a_nic_fits_one_surviving_port(name: str) -> None:
    drill = load(name)
    fabric = build(drill.topology)
    ports = len(fabric.nics[0].links)
    flows = flows_of(drill.workload, fabric)
    sending = max(flow.sending_ns / (flow.sending_ns + flow.pause_ns) if flow.transfers else 1.0 for flow in flows)
    assert drill.workload.load * sending * ports <= 0.8
    held_ns = max(flow.sending_ns for flow in flows) * max(drill.workload.load * ports - 1, 0)
    assert held_ns <= drill.topology.queue_ms * 1e6, "what a transfer is ahead of the port has room in its queue"


def test_the_library_holds_every_fault_on_both_dual_tor_architectures_and_the_baselines() -> None:
    found = {(d.name, d.topology.architecture) for d in ls()}
    for name in ("healthy-baseline", "link-down", "link-flap", "tor-crash"):
        assert {(name, "hpn"), (f"{name}-clos", "dual-tor-clos")} <= found
    assert ("link-down-single-tor", "single-tor") in found
    assert not load("link-down-no-path-control").topology.path_control.enabled


def test_the_library_shows_every_fault_of_the_catalogue() -> None:
    assert {planned.fault.KIND for drill in ls() for planned in drill.timeline.faults} == set(FAULTS)


@pytest.mark.parametrize("name", names())
def test_a_drill_can_be_shown(name: str) -> None:
    lines = describe(load(name))
    assert lines[0].startswith(f"{name}: ")
    assert all("\n" not in line for line in lines)


def test_a_drill_is_found_by_name_or_path() -> None:
    assert find("link-down") == LIBRARY / "link-down.yaml"
    assert find("./mine.yaml") == Path("mine.yaml")
    with pytest.raises(InputError, match="no drill 'link-dwn' in the library; did you mean link-down"):
        find("link-dwn")
