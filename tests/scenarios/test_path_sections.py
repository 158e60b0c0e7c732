"""What a drill's job says of queue pairs that change their path: read, and refused with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scenarios.drill.load import drill_from
from scenarios.drill.model import Drill
from testbed.errors import InputError
from testbed.files.document import parse
from traffic.rdma.rehash import RehashPolicy

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
    ("section", "topology", "message"),
    [
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
