"""The terminal summary, letter by letter. After a wanted change: HPN_UPDATE_GOLDEN=1 pytest tests/results."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.downtime import Downtime
from hpn.results.judge.verdict import at_most, decide, holds
from hpn.results.text.checks import describe
from hpn.results.text.terminal import summary
from hpn.results.text.values import milliseconds
from tests.results.sample import MANIFEST, metrics, ports, verdict
from tests.results.shown import as_text

GOLDEN = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("HPN_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize(
    ("name", "outage_ms", "reasons"),
    [
        ("pass.txt", 20, ()),
        ("fail.txt", 80, ()),
        ("never-recovered.txt", 9000, ()),
        ("inconclusive.txt", 20, ("our processes waited for a CPU 50 % of the time they could have run (limit 25 %)",)),
    ],
)
def test_the_summary_reads_as_agreed(name: str, outage_ms: int, reasons: tuple[str, ...]) -> None:
    found = metrics(outage_ms)
    check_golden(name, as_text(summary(MANIFEST, found, verdict(found, *reasons))))


def test_how_long_a_job_stood_still_stands_beside_its_interval() -> None:
    found = metrics()
    stood = Downtime(2004.97, 0, 1, 16, "new", 0.83)
    still = Downtime(
        None, 0, None, 2, "", 0.83, "2 of 2 replacement flows did not get 5 packets through in order, first new"
    )
    all_through = (
        "job downtime 2005 ms (2002.22..2006.89): death to 5 packets in order of the last of 16 replacement flows"
    )
    for downtime, said in ((stood, f"{all_through} ("), (still, f"job downtime: it did not go on, {still.reason} (")):
        edges = (found.edges[0], replace(found.edges[1], downtime=downtime))
        text = as_text(summary(MANIFEST, replace(found, edges=edges), verdict(found)))
        assert f"  {said}link repair 0)\n" in text
    late = (*found.flows[:2], replace(found.flows[2], replaces=0))
    text = as_text(summary(MANIFEST, replace(found, flows=late), verdict(found)))
    assert "\n3 flows and 1 replacement flows (" in text


def test_what_was_sampled_at_ports_is_told_in_brief() -> None:
    found = replace(metrics(), ports=ports())
    check_golden("ports.txt", as_text(summary(MANIFEST, found, verdict(found))))


def test_a_run_that_never_measured_still_says_why() -> None:
    text = as_text(summary(replace(MANIFEST, repeat=3), None, decide([], ["the workload did not start"])))
    assert text.startswith(
        "INCONCLUSIVE  link-down #3 on tiny (nft datapath, host engine, Linux 6.18.0, quick profile)\n"
        "  because the workload did not start\n"
    )


def test_names_with_brackets_are_no_markup() -> None:
    check = holds("state [bold]restored", False, evidence="[red]x")
    text = as_text(summary(MANIFEST, None, decide([check])))
    assert "state [bold]restored" in text
    assert "[red]x" in text


def test_a_check_in_one_line() -> None:
    check = at_most("worst outage", 20.04, 50, unit="ms", low=19.5, high=20.5, evidence="flow 3")
    assert describe(check) == "measured 20.0 ms, limit 50.0 ms, margin 30.0 ms, interval 19.5 to 20.5 ms, flow 3"
    assert describe(holds("restored", True)) == "pass"
    nothing = at_most("worst outage", 0.0, 50, unit="ms", low=0.0, high=0.8333)
    assert describe(nothing) == "measured < 0.84 ms, limit 50.0 ms, margin 50.0 ms"


def test_milliseconds_keep_three_digits() -> None:
    assert [milliseconds(value) for value in (None, 0.0, 0.123, 12.34, 1234.5)] == ["-", "0.00", "0.12", "12.3", "1234"]


def test_a_guest_s_accelerator_stands_beside_its_engine() -> None:
    manifest = replace(MANIFEST, engine="qemu", accelerator="tcg (no /dev/kvm)")
    text = as_text(summary(manifest, None, decide([holds("restored", True)])))
    assert "(nft datapath, qemu engine, tcg (no /dev/kvm), Linux 6.18.0, quick profile)" in text


def test_hosts_that_are_not_the_lab_s_are_named_beside_the_measurement_s_profile() -> None:
    for profile, told in (("lab", "quick profile)"), ("production", "quick profile, production hosts)")):
        text = as_text(summary(replace(MANIFEST, host_profile=profile), None, decide([holds("restored", True)])))
        assert f"Linux 6.18.0, {told}" in text


def test_a_lab_that_was_not_quiet_before_the_next_edge_took_longer_than_it_shows() -> None:
    calm = metrics()
    first = calm.edges[0]
    late = replace(first.marks[-1], last_ns=first.edge.window_end_ns - 1_000_000)
    text = as_text(summary(MANIFEST, replace(calm, edges=(replace(first, marks=(late,)),)), verdict(calm)))
    assert ">= 1999" in text
    assert "converged: no 1 s of quiet after the last change (link failure 0)" in text
