"""The bench of jobs: what is held against what; its times are nobody's promise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.selfcheck.bench import jobs
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.vm.engines import ENGINES
from hpn.traffic.tools import sockperf

FOLDER = Path(jobs.__file__).parent
MEASURED = {"job_pps": 6e4, "job_lost": 0.0, "iperf3_pps": 6e4, "iperf3_lost": 7.0}


@pytest.mark.parametrize(("job", "met"), [(157_000.0, True), (156_999.0, False)])
def test_a_job_has_to_be_as_cheap_as_iperf3_beside_it(job: float, met: bool) -> None:
    ours, beside = jobs.figures({**MEASURED, "job_per_cpu_s": job, "iperf3_per_cpu_s": 157_000.0})
    assert (ours.target, ours.met) == (beside.value, met)
    assert "7 lost" in beside.note
    assert "sockperf is not installed" in ours.note


@pytest.mark.parametrize(("job", "met"), [(170_000.0, False), (183_000.0, True)])
def test_it_has_to_be_as_cheap_as_the_cheapest_that_is_installed(job: float, met: bool) -> None:
    both = {"iperf3_per_cpu_s": 157_000.0, "sockperf_pps": 6e4, "sockperf_lost": 0.0, "sockperf_per_cpu_s": 183_000.0}
    ours, _, beside = jobs.figures({**MEASURED, **both, "job_per_cpu_s": job})
    assert (ours.target, ours.met, beside.value) == (183_000.0, met, 183_000.0)
    assert "not installed" not in ours.note


def test_what_sockperf_says_is_understood() -> None:
    client = "sockperf: Total of 39978 messages sent in 2.004 sec\n\nsockperf: Summary: Message Rate is 19951 [msg/sec]"
    server = "sockperf: Test end (interrupted by user)\nsockperf: Total 36921 messages received and handled"
    assert sockperf.parse(client, server) == sockperf.Throughput(2.004, 39978, 36921)
    with pytest.raises(MachineError, match="not understood"):
        sockperf.parse(client, "sockperf: No messages were received on the server.")


@pytest.mark.parametrize("name", ["job", "job-multipath"])
def test_the_drill_without_packets_is_otherwise_the_drill_with_them(name: str) -> None:
    busy, idle = load_drill(FOLDER / f"{name}.yaml"), load_drill(FOLDER / f"{name}-idle.yaml")
    assert busy.job is not None
    assert idle.job is not None
    assert busy.job != idle.job == replace(busy.job, work=idle.job.work)
    assert (busy.topology, busy.timeline) == (idle.topology, idle.timeline)


def test_multipath_does_the_job_of_rc() -> None:
    reliable, multipath = load_drill(FOLDER / "job.yaml"), load_drill(FOLDER / "job-multipath.yaml")
    assert reliable.job is not None
    assert multipath.job is not None
    assert multipath.job.transport.multipath is not None
    assert reliable.job.work == multipath.job.work
    assert (reliable.topology, reliable.timeline) == (multipath.topology, multipath.timeline)


@pytest.mark.parametrize(("mean_ms", "met"), [(245.8, True), (245.9, False)])
def test_the_ring_is_held_against_its_bound(monkeypatch: pytest.MonkeyPatch, mean_ms: float, met: bool) -> None:
    """6 MB a rank, in packets of 4096 + 58 bytes at 200 Mbit/s: 243.4 ms."""

    class Ran:
        job = type("Job", (), {"ranks": 4, "mean_ms": mean_ms})

    monkeypatch.setattr(jobs, "_cost", lambda _engine, _drill: Ran)
    figure = jobs.virtual_ring(ENGINES["uml-virtual-time"])
    assert figure.met is met
    assert "bound 243.40: 4 ranks, 4 MB" in figure.note


def test_the_ring_is_that_of_the_target() -> None:
    drill = catalogue.load("link-down-allreduce")
    assert {link.rate_bps for nic in build(drill.topology).nics for link in nic.links} == {200_000_000}


def test_what_a_packet_costs_is_shown_with_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 packets more take 20 ms of user time and 5 ms of system time more."""

    class Ran:
        def __init__(self, packets: int, user_s: float, system_s: float, sent: int = 0) -> None:
            self.job = type("Job", (), {"packets": packets})
            self.user_s, self.system_s, self.cpu_s, self.sent = user_s, system_s, user_s + system_s, sent

    single, several = (Ran(1024, 2.02, 3.005), Ran(24, 2.0, 3.0)), (Ran(2024, 2.05, 3.016), Ran(24, 2.0, 3.0))
    runs = iter([*single, *several, Ran(1024, 2.03, 3.007, sent=6200), Ran(24, 2.0, 3.0, sent=200)])
    drills: list[Drill] = []

    def cost(_engine: object, drill: Drill) -> Ran:
        drills.append(drill)
        return next(runs)

    monkeypatch.setattr(jobs, "_cost", cost)
    reliable, multipath, buffers = jobs.virtual_packets(ENGINES["uml-virtual-time"])
    assert reliable.value == pytest.approx(25)
    assert not reliable.met
    assert reliable.note.startswith("user 20.0, system 5.0; 1,000 packets")
    assert multipath.value == pytest.approx(33 / 25)
    assert not multipath.met
    assert multipath.note.startswith("33.0 us: user 25.0, system 8.0; 2,000 packets")
    assert buffers.value == pytest.approx((37 - 25) / 6)
    assert not buffers.met
    assert buffers.note.startswith("6.0 ports a packet, with its acknowledgement; 37.0 us: user 30.0, system 7.0")
    plain, switched = drills[:2], drills[4:]
    assert all(drill.put_on is not None and drill.put_on.switch is not None for drill in switched), "a guest gets it"
    assert [replace(drill, topology=plain[0].topology, other_fabric=None) for drill in switched] == plain
