"""A job's settings in words have the units that a drill file has."""

from __future__ import annotations

from pathlib import Path

from hpn.scenarios.drill.describe import describe
from hpn.scenarios.drill.load import drill_from
from hpn.testbed.files.document import parse

DRILL = """\
drill: words
summary: a job that computes
topology: {preset: tiny}
job: {training: {compute: 120 ms, data: 8, data_size: 2 MB}}
timeline: {healthy: 1 s, faults: [], settle: 1 s}
expect:
  - job_survives: yes
"""


def test_a_job_s_times_and_sizes_have_the_units_of_its_file() -> None:
    told = "\n".join(describe(drill_from(parse(DRILL, "words"), Path())))
    assert "compute 120 ms" in told
    assert "data_size 2 MB" in told
    assert "training compute" in told, "the key of the file, not the name of our class"
    assert "_ns" not in told
    assert "_bytes" not in told


def test_an_order_and_a_window_that_are_not_the_defaults_are_told() -> None:
    usual = "\n".join(describe(drill_from(parse(DRILL, "words"), Path())))
    assert "source ports disjoint\n" in usual
    text = DRILL.replace("job: {", "job: {order: interleaved, window: 16, ")
    told = "\n".join(describe(drill_from(parse(text, "words"), Path())))
    assert "source ports disjoint, hosts interleaved, a window of 16 packets\n" in told
