"""The claims of the paper: each names runs that exist, and is answered from evidence alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from failover.model import DrillMetrics, Goodput, NicGoodput
from failover.ports import NicBalance, PortMetrics, PortResult, Ports
from results.folder import RunFolder
from results.terminal import as_text
from scenarios.calibrate import packets_per_s
from scenarios.load import load_drill
from scenarios.reproduce import (
    FOLDER,
    Ran,
    Row,
    choose,
    claims_table,
    drill_file,
    exit_code,
    judge,
    markdown,
)
from scenarios.reproduce_claims import CLAIMS, Answer
from scenarios.reproduce_judges import Evidence, Finding
from scenarios.reproduce_paths import QUEUE_PAIRS, SPEC, PathFigures, figures
from testbed.errors import InputError
from testbed.events import Event, EventKind
from testbed.fabric.build import build
from testbed.fabric.inventory import inventory
from testbed.fabric.load import load_fabric
from tests.scenarios.measured import flow, link_down, metrics, stalled

DRILLS = sorted({name for claim in CLAIMS for name in claim.drills})
PATHS = (
    PathFigures("hpn", 16, (1.0, 1.0), 1.6, 1.2, 1.0),
    PathFigures("dual-tor-clos", 16, (1.0, 3.0), 1.6, 1.6, 1.0),
)
SHUT_DOWN = Event(0, EventKind.DAEMON, "p0.s0.t0.1", "stack", "shut-down")


@pytest.mark.parametrize("name", DRILLS)
def test_the_drill_of_a_claim_is_there(name: str) -> None:
    assert load_drill(drill_file(name)).name == name


def test_every_drill_of_the_folder_speaks_to_a_claim() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} <= set(DRILLS)


def test_every_claim_says_why_ours_differs_or_is_missing() -> None:
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.why
        assert (claim.judge is None) == (not claim.drills and not claim.by)


def test_claims_are_chosen_by_key() -> None:
    assert [claim.key for claim in choose(["pod-size"])] == ["pod-size"]
    assert choose([]) == CLAIMS
    with pytest.raises(InputError, match="no claim 'pod-sise'; did you mean pod-size"):
        choose(["pod-sise"])


def _rows(keys: Sequence[str], ran: dict[str, Ran]) -> list[Row]:
    return list(judge(choose(keys), ran, {}))


def _answer(key: str, **drills: DrillMetrics) -> bool:
    """Whether a claim holds for these drills; '_' in a name stands for '-', nobody shuts down."""
    found = {name.replace("_", "-"): each for name, each in drills.items()}
    return _finding(key, found, {})


def _finding(key: str, drills: dict[str, DrillMetrics], events: dict[str, list[Event]]) -> bool:
    return _found(key, drills, events).agrees


def _found(
    key: str,
    drills: dict[str, DrillMetrics],
    events: dict[str, list[Event]] | None = None,
    paths: Sequence[PathFigures] = (),
) -> Finding:
    (claim,) = choose([key])
    assert claim.judge is not None
    by_name = {each.architecture: each for each in paths}
    return claim.judge(Evidence(drills, events or {}, by_name, inventory(load_fabric("pod"))))


def test_what_could_not_run_is_not_answered() -> None:
    (row,) = _rows(["dual-tor-repair"], {"link-down": Ran(None, "no kernel")})
    assert (row.answer, row.ours) == (Answer.NOT_RUN, "link-down: no kernel")
    (row,) = _rows(["dual-tor-repair"], {"link-down": Ran(RunFolder(Path("nowhere")), "inconclusive: busy")})
    assert row.answer is Answer.NOT_RUN


def test_what_nothing_speaks_to_says_so() -> None:
    (row,) = _rows(["training"], {})
    assert (row.answer, row.by, row.ours) == (Answer.NOT_REPRODUCED, "nothing yet", "-")


def test_the_pod_is_counted() -> None:
    rows = _rows(["pod-size", "tor-oversubscription"], {})
    assert [row.ours for row in rows] == [
        "15,360 GPUs, 240 ToRs, 120 Aggs, 30,720 + 14,400 links",
        "ToR 1.067:1",
    ]
    assert {row.answer for row in rows} == {Answer.COMPUTED}


def _ports(queue_ms: float, *balance: tuple[float, float]) -> DrillMetrics:
    """Two ports towards NICs with that mean queue, and what the ports of each NIC carry."""
    port = PortResult("t:p", "l", "tor down", "n", 10**8, 100, 0.5, 1, 1, 0, 1.0, 1, 1, queue_ms, 19.0, 20.0, 0.1)
    uplink = replace(port, tier="tor up", nic=None, queue_mean_ms=1000.0)
    nics = tuple(NicBalance(f"n{at}", bps, (100, 100)) for at, bps in enumerate(balance))
    found = PortMetrics(2.0, Ports.SWITCHES, 3.0, 0.0, (port, port, uplink), nics)
    return replace(metrics((), ()), ports=found)


def test_ports_differ_in_a_clos_and_not_with_two_planes() -> None:
    skewed, even = _ports(4.0, (50.0, 20.0), (40.0, 40.0)), _ports(0.02, (40.0, 39.9))
    drills = {"port-load-clos": skewed, "port-load-hpn": even}
    found = _found("port-imbalance", drills, paths=PATHS)
    assert found.agrees
    assert found.ours.startswith("Clos: up to 2.5x, median 1.8x; dual plane: 1.00x (1 NICs)")
    assert found.ours.endswith("computed from paths: 3.0x and 1.0x")
    assert "computed" not in _found("port-imbalance", drills).ours
    assert not _finding("port-imbalance", {"port-load-clos": even, "port-load-hpn": even}, {})
    assert not _finding("port-imbalance", {"port-load-clos": skewed, "port-load-hpn": skewed}, {})


def test_queues_are_those_of_the_ports_towards_nics() -> None:
    drills = {"port-load-clos": _ports(4.0), "port-load-hpn": _ports(0.4)}
    found = _found("tor-queue", drills)
    assert found.agrees
    assert found.ours.startswith("-90.0%: 4.00 ms with Clos, 0.4000 ms with two planes, on the mean of 2 ports")
    assert not _finding("tor-queue", {"port-load-clos": _ports(4.0), "port-load-hpn": _ports(3.0)}, {})
    assert not _finding("tor-queue", {"port-load-clos": _ports(0.0), "port-load-hpn": _ports(0.0)}, {})


def _paths(*lost: int) -> DrillMetrics:
    """Two flows of each NIC, the first of which loses so many of 4,000 packets."""
    flows = [replace(flow(f"{nic}#{k}", src=f"n{nic}"), received=4000 - (0 if k else n), lost=n)
             for nic, n in enumerate(lost) for k in range(2)]  # fmt: skip
    return metrics((), flows)


def test_the_slowest_nic_sets_the_pace() -> None:
    drills = {"path-choice-hash": _paths(0, 4000), "path-choice-in-turn": _paths(0, 800)}
    found = _found("path-selection", {**drills, "path-choice-disjoint": _paths(0, 0)}, paths=PATHS)
    assert found.agrees
    assert found.ours.startswith("+100.0% against hashes, +11.1% against ports in turn")
    assert "100% through by choice, 90% in turn, 50% by hash (the slowest queue pair by hash 0%)" in found.ours
    assert "160% by hash, 120% in turn, 100% by choice" in found.ours
    assert not _found("path-selection", {**drills, "path-choice-disjoint": _paths(0, 4000)}).agrees


@pytest.mark.parametrize("name", [name for name in DRILLS if name.startswith(("port-load", "path-choice"))])
def test_drills_of_port_claims_sample_every_switch(name: str) -> None:
    drill = load_drill(drill_file(name))
    assert drill.sample is not None
    assert drill.sample.ports is Ports.SWITCHES
    assert packets_per_s(drill) < 50_000


def test_drill_claims_follow_the_runs() -> None:
    lives, dies, short = stalled(died=False), stalled(died=True), link_down()
    assert _answer("dual-tor-repair", link_down=short)
    assert _answer("single-tor-1-min", outage_30s=lives, outage_60s=dies, outage_60s_patient=lives)
    assert not _answer("single-tor-1-min", outage_30s=lives, outage_60s=dies, outage_60s_patient=dies)
    assert _answer("single-tor-2-min", outage_120s_patient=dies)
    assert not _answer("single-tor-2-min", outage_120s_patient=lives)
    assert _answer("single-tor-flap", link_flap_single_tor=lives)
    assert _answer("dual-tor-flap", link_flap=short, link_flap_clos=short, link_flap_single_tor=lives)
    assert not _answer("dual-tor-flap", link_flap=short, link_flap_clos=lives, link_flap_single_tor=lives)


def test_a_rack_is_gone_when_none_of_its_flows_is_left() -> None:
    assert _answer("stacked-collapse", stacked_dataplane_death=stalled(died=True), tor_dataplane_death=link_down())
    assert not _answer("stacked-collapse", stacked_dataplane_death=link_down(), tor_dataplane_death=link_down())


def test_an_upgrade_takes_a_stacked_tor_down_and_no_other() -> None:
    drills = {name: link_down() for name in ("stacked-upgrade", "stacked-upgrade-hpn")}
    assert _finding("stacked-upgrade", drills, {"stacked-upgrade": [SHUT_DOWN], "stacked-upgrade-hpn": []})
    assert not _finding("stacked-upgrade", drills, {"stacked-upgrade": [], "stacked-upgrade-hpn": []})


@pytest.mark.parametrize(("after_bps", "holds"), [(50.0, True), (100.0, False), (0.0, False)])
def test_dual_tor_loses_a_sixteenth_or_so(after_bps: float, holds: bool) -> None:
    nics = [
        NicGoodput(f"p0.s0.h0.r{rail}", "up", Goodput(100.0, 0.0, 100.0 if rail else after_bps)) for rail in range(8)
    ]
    nics.append(NicGoodput("p0.s1.h0.r0", "down", Goodput(100.0, 0.0, 0.0)))  # another host
    found = link_down()
    failure = replace(found.edges[0], nics=tuple(nics))
    assert _answer("dual-tor-link-down", link_down_full_load=replace(found, edges=(failure, *found.edges[1:]))) is holds


class _Skewed:
    """A fabric in which every path ends on port 0 of the receiver, or on the port it began with."""

    def __init__(self, *, planes: bool) -> None:
        self._planes = planes

    def ports(self, nic: str) -> int:
        return 2

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        return sport % 2

    def links(self, src_nic: str, dst_nic: str, sport: int) -> Sequence[str]:
        last = sport % 2 if self._planes else 0
        return f"{src_nic}.{sport % 2}", f"up{sport % 4}", f"down{sport % 4}", f"{dst_nic}.{last}"

    def rate_bps(self, link: str) -> int:
        return 200_000_000 if link.startswith("p0") else 1_600_000_000


def test_path_figures_tell_a_second_hash_from_none() -> None:
    fabric = build(SPEC)
    even, skewed = (figures(fabric, _Skewed(planes=planes)) for planes in (True, False))
    assert set(even.ratios) == {1.0}
    assert set(skewed.ratios) == {float(QUEUE_PAIRS)}
    assert skewed.turns_worst > 1.5 * even.turns_worst


def test_the_tables_name_every_claim() -> None:
    rows = _rows(["pod-size", "training"], {})
    assert exit_code(rows) == 0
    assert exit_code([replace(rows[0], answer=Answer.NOT_RUN)]) == 4
    assert exit_code([replace(rows[0], answer=Answer.DIFFERS), *rows]) == 1
    assert "15,360 GPUs" in as_text(claims_table(rows))
    assert [line for line in markdown(rows, "host").splitlines() if line.startswith("| one pod")]
