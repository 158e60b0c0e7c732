"""What a lab exports: families by Prometheus' conventions, samples of a condition, and the dashboard's queries."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import fields

import pytest

from docs.site.reference import REFERENCE
from hpn.testbed.condition import Condition
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.rtnetlink.mmu import ClassCounters
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading
from hpn.testbed.lab.service.metrics import exporter
from hpn.testbed.lab.service.metrics.families import FAMILIES, Family, Kind
from hpn.testbed.lab.service.metrics.samples import Sample, Scrape, samples
from tests.lab.dashboard import BOARD, Query, queries
from tests.lab.running import tiny

TINY = build(tiny(bgp={"bfd": {"interval_ms": 100, "multiplier": 3}}))
TOR = "p0.s0.t0.0"
OF_SWITCHES = {name for name in FAMILIES if name.startswith(("hpn_class_", "hpn_pfc_"))}
"""Families of labs with ``switch:``."""
BROKEN = Condition(
    at_ns=1,
    broken=(TOR, "p0.s0.h0.r0.0"),
    dead=(TOR,),
    dark=("p0.s0.h0:r0p0",),
    idle={"p0.s0.h0:r0p0": ("detached", "no carrier")},
    active={"p0.s0.h0.r0": 1},
    sessions_down=("p0.a0.0:s0r0t0",),
    bfd_down=("p0.a0.0:s0r0t0",),
    routes={TOR: "all"},
    events={"link": {"carrier-down": {"": 1, "0": 2}}},
    busy_ns=2_000_000,
    suspects={"p0.s0.t0.0-p0.a0.0 upwards": "loses 1 % of its packets"},
)


COUNTERS = dict.fromkeys((each.name for each in fields(ClassCounters)), 0)
IDLE = ClassCounters(**COUNTERS)
BUSY = ClassCounters(
    **COUNTERS
    | {"queue": 7, "sent_packets": 9, "headroom_drops": 2, "tx_xoff": 3, "rx_xon": 1, "pausing_ns": 250_000_000}
)


def scrape(condition: Condition, spec: FabricSpec | None = None, marked: int | None = 5) -> Scrape:
    fabric = TINY if spec is None else build(spec)
    numbers = [end.ifindex for link in fabric.links for end in (link.lower, link.upper)]
    classes = () if marked is None else (IDLE,) * 3 + (BUSY,) + (IDLE,) * 4
    readings = {
        number: BucketReading(1, number, 1500, 1, 2, 10**9, 10**6, 200_000_000, marked, classes) for number in numbers
    }
    return Scrape("mine", fabric, 1e9, condition, readings, 0.001)


def values(condition: Condition) -> dict[str, list[Sample]]:
    return {family.name: found for family, found in samples(scrape(condition))}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_names_and_units_are_those_of_prometheus(family: Family) -> None:
    name, kind, words, labels = family.name, family.kind, family.help, family.labels
    assert re.fullmatch(r"hpn(_[a-z]+)+", name)
    assert name.endswith("_total") == (kind is Kind.COUNTER)
    assert not re.search(r"_(ms|ns|us|kb|mb|bits|bps|percent|milliseconds|minutes)(_|$)", name), "base units"
    assert words.endswith(".")
    assert labels[0] == "lab"
    assert not {"instance", "job", "le", "quantile"} & set(labels)


@pytest.mark.parametrize("condition", [Condition(1), BROKEN], ids=["well", "broken"])
def test_every_family_is_exported_with_its_labels_and_no_series_twice(condition: Condition) -> None:
    found = values(condition)
    assert set(FAMILIES) == set(found)
    for name, of_family in found.items():
        assert {len(labels) for labels, _ in of_family} <= {len(FAMILIES[name].labels)}
        assert len({labels for labels, _ in of_family}) == len(of_family), name


def test_what_is_wrong_is_zero_and_all_else_is_one() -> None:
    found = values(BROKEN)
    zero = {name: [labels[1] for labels, value in of if value == 0] for name, of in found.items()}
    assert zero["hpn_switch_up"] == zero["hpn_switch_routes_complete"] == [TOR]
    assert zero["hpn_port_carrier"] == zero["hpn_lacp_port_distributing"] == ["p0.s0.h0"]
    assert zero["hpn_bgp_session_established"] == zero["hpn_bfd_session_up"] == ["p0.a0.0"]
    assert dict(found["hpn_lag_active_ports"])["mine", "p0.s0.h0", "p0.s0.h0.r0", "0"] == 1
    assert dict(found["hpn_lacp_ports"])["mine", "0", "detached"] == 1
    assert found["hpn_lab_broken_parts"] == [(("mine",), 2)]
    assert found["hpn_locate_suspect"] == [(("mine", "p0.s0.t0.0-p0.a0.0 upwards"), 1)]
    assert found["hpn_events_total"] == [
        (("mine", "link", "carrier-down", ""), 1),
        (("mine", "link", "carrier-down", "0"), 2),
    ]
    well = values(Condition(1))
    assert well["hpn_locate_suspect"] == [(("mine", ""), 0)]
    assert all(value == 1 for _, value in [*well["hpn_port_carrier"], *well["hpn_switch_up"]])


def test_a_class_that_was_used_is_exported_with_its_priority_and_an_idle_one_is_not() -> None:
    found = values(Condition(1))
    assert {labels[-1] for labels, _ in found["hpn_class_queue_bytes"]} == {"3"}
    port = ("mine", TOR, "h0r0", "access", "down", "0", "0", "3")
    assert dict(found["hpn_class_queue_bytes"])[port] == 7
    assert dict(found["hpn_class_drops_total"])[*port, "headroom"] == 2
    assert dict(found["hpn_pfc_frames_total"])[*port, "xoff", "sent"] == 3
    assert dict(found["hpn_pfc_frames_total"])[*port, "xon", "received"] == 1
    assert dict(found["hpn_pfc_pause_seconds_total"])[*port, "sent"] == 0.25
    assert dict(found["hpn_pfc_pause_seconds_total"])[*port, "received"] == 0


def test_a_large_lab_has_thousands_of_series_and_not_more() -> None:
    found = list(samples(scrape(Condition(1), PRESETS["medium"].spec, marked=None)))
    assert sum(len(of_family) for _, of_family in found) < 6_000
    assert "hpn_port_transmit_marked_packets_total" not in {family.name for family, _ in found}, "no RED, no marks"
    assert not [family.name for family, _ in found if family.name in OF_SWITCHES]


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.where)
def test_a_query_of_the_dashboard_asks_for_what_is_exported(query: Query) -> None:
    expression = query.expression
    names = re.findall(r"\bhpn_\w+", expression)
    assert names
    assert set(names) <= set(FAMILIES)
    labels = set.intersection(*(set(FAMILIES[name].labels) for name in names))
    asked = re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', expression)
    for grouped in re.findall(r"\bby\s*\(([^)]*)\)", expression):
        asked += grouped.replace(",", " ").split()
    assert set(asked) <= labels
    assert set(query.legend_labels) <= labels
    for name in names:
        counted = re.search(rf"\b(rate|increase)\({name}\b", expression) is not None
        assert counted == (FAMILIES[name].kind is Kind.COUNTER), "counters are asked for their rate, gauges never"


def test_the_dashboard_covers_what_a_plain_lab_exports() -> None:
    text = BOARD.read_text()
    assert [name for name in FAMILIES if name not in text and name not in OF_SWITCHES] == [
        "hpn_port_transmit_marked_packets_total",  # of labs with RED
        "hpn_bfd_session_up",  # of labs with BFD
    ]
    assert len({panel["id"] for panel in json.loads(text)["panels"]}) == len(json.loads(text)["panels"])


def test_a_port_in_use_and_one_that_may_not_be_had_are_one_line() -> None:
    with exporter.listen(0) as held:
        port = held.getsockname()[1]
        assert exporter.url(held) == f"http://127.0.0.1:{port}/metrics"
        with pytest.raises(InputError, match=rf"127.0.0.1:{port} \(Address already in use\); choose another") as caught:
            exporter.listen(port)
    assert "\n" not in str(caught.value)


@pytest.fixture
def supervisor() -> Iterator[tuple[exporter.ScrapeRequest, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield exporter.ScrapeRequest(ours), theirs


def test_the_exporter_waits_for_no_supervisor_for_ever_and_takes_no_old_answer_for_a_new_one(
    supervisor: tuple[exporter.ScrapeRequest, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, end = supervisor
    monkeypatch.setattr(exporter, "_ANSWER_S", 0.05)
    with pytest.raises(MachineError, match="did not answer within"):
        asked.condition()
    monkeypatch.setattr(exporter, "_ANSWER_S", 30.0)
    end.sendall(b'{"ok": {"at_ns": 1}}\n{"ok": {"at_ns": 2}}\n{"error": "not now", "exit_code": 3}\n')
    assert asked.condition().at_ns == 2
    with pytest.raises(MachineError, match="not now"):
        asked.condition()
    end.close()
    with pytest.raises((MachineError, OSError)):
        asked.condition()


def test_every_metric_is_in_the_reference_with_its_labels() -> None:
    rows = re.findall(r"^\| `(hpn_\w+)` \| (\w+) \| ([^|]*) \| (.+) \|$", REFERENCE["lab-metrics"](), re.M)
    assert [(name, kind, labels.replace("`", "").split(", ")) for name, kind, labels, _ in rows] == [
        (family.name, family.kind.value, list(family.labels)) for family in FAMILIES.values()
    ]
