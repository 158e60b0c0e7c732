"""Goodput of streams in the fault is compared always: pages tell it, and expectations may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.model import DrillMetrics, Goodput
from hpn.results.comparison.differences import differences
from hpn.results.comparison.figures import Key, values_of
from hpn.results.comparison.groups import Across, Compared, grouped
from hpn.results.comparison.stream_figures import stream_figures
from hpn.results.judge.verdict import Verdict
from hpn.results.text.difference_table import differing_sheet
from tests.results.comparing import comparison
from tests.results.sample import MANIFEST, metrics, verdict

RATE = Key("streams", "goodput during the first fault", "bit/s", more_is_worse=False)
SHARE = Key("streams", "goodput during the first fault, of that before", "%", more_is_worse=False)
NO_EXPECTATION = Verdict(verdict(metrics()).outcome, ())


def of_goodput(before_bps: float, during_bps: float) -> DrillMetrics:
    made = metrics()
    first = replace(made.edges[0], goodput=Goodput(before_bps, during_bps, before_bps))
    return replace(made, edges=(first, *made.edges[1:]))


def run(found: DrillMetrics, version: str = "1") -> Compared:
    return Compared("runs/one", replace(MANIFEST, versions={"hpn": version}), found, NO_EXPECTATION)


def test_the_goodput_in_the_fault_has_a_row_without_an_expectation() -> None:
    """'goodput -11.5 %' and '-21.9 %' stood on the two runs' pages, and the comparison had no row of it."""
    groups = grouped([run(of_goodput(100e6, 88.5e6)), run(of_goodput(100e6, 78.1e6), "2")], list(Across))
    found = {each.key: each for each in differences(groups)}
    assert (found[SHARE].is_worse, found[RATE].is_worse) == (True, True)
    rows = {row[0]: row[1:] for row in differing_sheet(comparison(groups, [*found.values()])).rows}
    one, other, told = rows["streams: goodput during the first fault, of that before"]
    assert (one.split("\n")[0], other.split("\n")[0]) == ("88.50 %", "78.10 %")
    assert told == "-10.40 points worse"


def test_a_window_may_hold_a_packet_more_or_less_and_lose_what_the_machine_adds() -> None:
    made = of_goodput(100e6, 80e6)
    made = replace(made, noise=replace(made.noise, noise_floor_ms=3.0, window_s=2.0))
    made = replace(made, edges=(replace(made.edges[0], resolution_ms=1.0), *made.edges[1:]))
    values = values_of(run(made))
    window_ms, before_ms = 2000, 2000
    off = 4 / window_ms
    assert (values[RATE].low, values[RATE].measured) == pytest.approx((80e6 - 100e6 * off, 80e6))
    assert values[SHARE].high == pytest.approx(80 + 100 * (off + 0.8 / before_ms))


def test_a_run_without_a_failure_or_without_streams_has_none() -> None:
    assert list(stream_figures(replace(metrics(), edges=metrics().edges[1:]))) == []
    assert list(stream_figures(replace(metrics(), edges=()))) == []
    assert list(stream_figures(of_goodput(0.0, 0.0))) == []
