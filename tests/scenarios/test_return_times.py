"""A drill whose times are shorter than the control plane's says so before it runs."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from hpn.cli import command_line
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.return_times import return_notes
from hpn.testbed.files.document import parse

UPLINK = "{id: cut, fault: link-down, target: p0.s0.t0.0-p0.a0.0, at: 1500 ms, for: 2 s}"
ACCESS = "{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1500 ms, for: 2 s}"
FLAP = "{id: flap, fault: link-flap, target: p0.s0.h0.r0.0, at: 1500 ms, period: PERIOD, duty: 50 %, count: 3}"


def drill(fault: str, settle: str = "3 s", topology: str = "tiny", load: str = "40 %") -> Drill:
    return drill_from(parse(text(fault, settle, topology, load), "mine"), Path())


def text(fault: str, settle: str = "3 s", topology: str = "tiny", load: str = "40 %") -> str:
    return (
        f"drill: mine\nsummary: x\ntopology: {topology}\nworkload: {{queue_pairs: 4, load: {load}}}\nprofile: quick\n"
        f"timeline: {{healthy: 1500 ms, faults: [{fault}], settle: {settle}}}\n"
        "expect:\n  - queue_pair_deaths: {at_most: 0}\n"
    )


def test_a_settle_within_the_return_of_bgp_is_told() -> None:
    """validate said 'good', and figures after the repair were mostly of the unrepaired fabric."""
    (found,) = return_notes(drill(UPLINK, "2 s"))
    assert found.startswith("settle 2 s: BGP returns up to 2 s after a repair")
    assert found.endswith("write settle: 3 s or more")
    assert return_notes(drill(UPLINK)) == return_notes(drill(ACCESS, "2 s")) == []
    (slow,) = return_notes(drill(UPLINK, topology="{preset: tiny, bgp: {connect_delay_s: 5}}"))
    assert "BGP returns up to 6 s" in slow


def test_a_flap_faster_than_lacp_is_told_with_the_datapaths_that_are_slower() -> None:
    """Failures 2 and 3 of link-flap hit a port that LACP kept out."""
    (found,) = return_notes(drill(FLAP.replace("PERIOD", "800 ms")))
    assert found.startswith("flap breaks a link 400 ms after its repair")
    assert "(kernel 2.1 s): a failure of an unused port tests no failover" in found
    assert return_notes(drill(FLAP.replace("PERIOD", "800 ms"), topology="{preset: tiny, lag: nft}")) == []
    assert return_notes(drill(FLAP.replace("PERIOD", "5 s"))) == []
    assert "only at the first" in catalogue.load("link-flap", None).summary


def test_validate_and_show_tell_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text(UPLINK, "2 s"))
    for command in ("validate", "show"):
        told = CliRunner().invoke(command_line, ["drill", command, str(file)]).output
        assert "settle 2 s: BGP returns up to 2 s" in " ".join(told.split()), command


def test_show_says_where_one_port_is_enough_or_all_that_is_used(tmp_path: Path) -> None:
    """Goodput as before at a ToR's death is then no proof that no capacity was lost."""
    file = tmp_path / "mine.yaml"

    def show(name: str) -> str:
        return " ".join(CliRunner().invoke(command_line, ["drill", "show", name]).output.split())

    def shown(load: str) -> str:
        file.write_text(text(ACCESS, load=load))
        return show(str(file))

    fits = "40 % of a NIC fits 1 of its 2 ports: the loss of one port costs no goodput"
    assert fits in shown("40 %")
    assert "costs no goodput" not in shown("60 %")
    assert "costs no goodput" not in show("link-down-single-tor")
    job = show("link-down-allreduce")
    assert "1 queue pair uses 1 of a NIC's 2 ports; 'queue_pairs: 2' can use all" in job


def test_a_job_whose_rate_after_the_repair_is_taken_before_its_port_is_back_is_told() -> None:
    """With a settle of 3 s iterations_after failed by that alone, and validate said 'good'."""
    streams = "workload: {queue_pairs: 4, load: 40 %}"

    def notes(settle: str, topology: str = "tiny") -> list[str]:
        of_job = text(ACCESS, settle, topology).replace(streams, "job: {collective: {kind: all-reduce, size: 1 MB}}")
        of_job = of_job.replace("queue_pair_deaths: {at_most: 0}", "job_survives: yes")
        return return_notes(drill_from(parse(of_job, "mine"), Path()))

    (found,) = notes("3 s")
    assert found.startswith("settle 3 s: a LAG by kernel takes a port back up to 2.1 s after its repair")
    assert found.endswith("write settle: 4.1 s or more")
    assert notes("5 s") == notes("3 s", "{preset: tiny, lag: nft}") == []
