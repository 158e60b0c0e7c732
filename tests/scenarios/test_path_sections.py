"""What a drill's job says of queue pairs that change their path: read, and refused with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.path_choice import check_source_ports
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import parse
from hpn.traffic.flows.patterns import NewFlows
from hpn.traffic.jobengine.rehash import RehashPolicy

WORK = "collective: {kind: all-reduce, size: 1 MB}, ib_timeout: 18"
MARKS = ", queue_ms: 60, ecn: {kmin_bytes: 60000, kmax_bytes: 240000, pmax: 0.2}"


def _drill(section: str, topology: str = MARKS) -> Drill:
    text = f"""drill: d
summary: s
topology: {{preset: tiny{topology}}}
job:
  {{{WORK},
  {section}}}
timeline: {{healthy: 1 s}}
expect: [job_survives: yes]
"""
    return drill_from(parse(text, "d.yaml"), Path())


def test_rounds_and_shares_are_read_and_the_defaults_are_linux_s() -> None:
    job = _drill("rehash: {rounds: 5, idle_rounds: 0, share: 25 %, suspend: 2 s}").job
    assert job is not None
    assert job.rehash == RehashPolicy(5, 0, 0.25, 2 * 10**9)
    job = _drill("rehash: {}").job
    assert job is not None
    assert job.rehash == RehashPolicy(12, 3, 0.5, 60 * 10**9)


@pytest.mark.parametrize(
    ("more", "reorder"), [("", 128), (", window: 32", 16), (", window: 10", 8), (", spray: {ports: 8, reorder: 9}", 9)]
)
def test_a_packet_may_be_overtaken_by_half_a_window_unless_it_is_said(more: str, reorder: int) -> None:
    spray = "" if "spray" in more else ", spray: {ports: 8}"
    job = _drill(f"recovery: selective-repeat{spray}{more}").job
    assert job is not None
    assert (job.spray, job.transport.reorder_packets) == (8, reorder)
    assert _job_reorder("recovery: selective-repeat") == 0


def _job_reorder(section: str) -> int:
    job = _drill(section).job
    assert job is not None
    return job.transport.reorder_packets


SR = "recovery: selective-repeat"


@pytest.mark.parametrize(
    ("section", "topology", "message"),
    [
        ("spray: {ports: 4}", "", "d.yaml:6: job.spray: with recovery: go-back-n all that overtakes"),
        (f"{SR}, spray: {{}}", "", "d.yaml:6: 'ports' is missing in job.spray"),
        (f"{SR}, spray: {{ports: 1}}", "", "d.yaml:6: job.spray.ports is 1; write"),
        (f"{SR}, spray: {{ports: 65}}", "", "d.yaml:6: job.spray.ports is 65; write"),
        (f"{SR}, spray: {{ports: 4, reorder: 3}}", "", "d.yaml:6: job.spray.reorder: 3 packets are fewer than ports"),
        (
            f"{SR}, spray: {{ports: 4, reorder: 255}}",
            "",
            "d.yaml:6: job.spray.reorder: 255 packets never follow",
        ),
        (f"{SR}, spray: {{ports: 4}}, window: 5", "", "d.yaml:6: job.spray: a window of 5 packets is too small for 4"),
        (f"{SR}, spray: {{ports: 4}}, rehash: {{}}", MARKS, "d.yaml:6: job.spray: a queue pair on many paths"),
        (f"{SR}, spray: {{ports: 4}}", ", aggs: 1", "d.yaml:6: job: spray: no queue pair has more than one path"),
        ("rehash: {}", "", "d.yaml:6: job.rehash: no switch marks packets"),
        ("rehash: {rounds: 0}", MARKS, "d.yaml:6: job.rehash.rounds"),
        ("rehash: {rounds: 2}", MARKS, "d.yaml:6: job.rehash.idle_rounds: 3 marked rounds are more than rounds: 2"),
        ("rehash: {share: 0 %}", MARKS, "d.yaml:6: job.rehash.share"),
        ("rehash: {suspend: 11 min}", MARKS, "d.yaml:6: job.rehash.suspend"),
        ("rehash: {round: 3}", MARKS, "d.yaml:6: unknown key 'round' in job.rehash"),
        ("rehash: {}, source_ports: link-disjoint", MARKS, "d.yaml:6: job.rehash: source_ports: link-disjoint chooses"),
        ("rehash: {}", f"{MARKS}, aggs: 1", "d.yaml:6: job: rehash: no queue pair has more than one path"),
        ("rehash: {}, segments: 1, hosts: 2, gpus: 1", MARKS, "d.yaml:6: job: rehash: no queue pair has more than"),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(section: str, topology: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        _drill(section, topology)


def test_more_source_ports_than_there_are_is_refused() -> None:
    nics = build(_drill("tick: 1 ms").topology).nics
    flows = [NewFlows(4096, 14, 7).between(nics[0], nics[1], k, 1.0) for k in range(256)]
    check_source_ports(flows, 64)
    with pytest.raises(InputError, match=r"257 queue pairs of p0\.s0\.h0\.r0 with 64 source ports each need 16448"):
        check_source_ports([*flows, flows[0]], 64)
