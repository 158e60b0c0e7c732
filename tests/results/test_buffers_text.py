"""Buffers for people: the ports that stopped others or dropped, and the queues of a running lab."""

from __future__ import annotations

from dataclasses import asdict, replace

from hpn.failover.analysis.buffers import of_note
from hpn.results.page.sections import buffers_table as on_page
from hpn.results.text.buffers import buffer_rows
from hpn.results.text.queues import queues_table
from hpn.results.text.terminal import summary
from hpn.testbed.kernel.rtnetlink.mmu import ClassCounters
from tests.results.sample import MANIFEST, buffers, class_use, metrics, verdict
from tests.results.shown import as_text

COUNTERS = ClassCounters(
    12_600, 361_398, 180_000, 187_362, 12_600, 16_800, 47_123, 197_916_600, 0, 7, 0, 1_234, 4_321, 4_320,
    12_345, 12_344, 4_500_123_456, 4_499_000_000, 2, 1, 17, 1, 0, 0,
)  # fmt: skip


def _summary(*found: object) -> str:
    measured = replace(metrics(), buffers=found)  # type: ignore[arg-type]  # rows
    return as_text(summary(MANIFEST, measured, verdict(measured)))


def test_a_run_shows_the_ports_that_dropped_or_stopped_others_most_first() -> None:
    _, columns, rows = buffer_rows(buffers())
    assert [row[:2] for row in rows] == [("p0.s0.t0.0:h1r0", "1"), ("p0.s0.t0.0:up0", "3"), ("p0.s0.t0.0:h1r0", "3")]
    stopped = dict(zip(columns, rows[2], strict=True))
    assert (stopped[">stopped others, ms"], stopped[">XOFF sent"], stopped[">headroom, KB"]) == ("4500", "321", "12.6")
    assert ">storms" not in columns, "no row has any"
    text = _summary(*buffers())
    assert "buffers (ports that stopped others, dropped or trimmed" in text
    page = on_page(replace(metrics(), buffers=buffers()))
    assert page is not None
    assert page.rows == rows


def test_a_deadlock_is_told_in_the_title() -> None:
    ring = (("t0", "t1"), ("t1", "t2"), ("t2", "t0"))
    stuck = [
        replace(class_use(f"{a}:{b}", paused=True, queue_bytes=9, pausing_ns=1), link="".join(sorted((a, b))))
        for a, b in ring
    ]
    stopping = [replace(class_use(f"{b}:{a}", pausing=True), link="".join(sorted((a, b)))) for a, b in ring]
    title, _, _ = buffer_rows((*stuck, *stopping))
    assert "; deadlock at the end: " in title
    assert title.count(" waits for ") == 3


def test_at_most_eight_are_shown_and_the_others_are_where_it_says() -> None:
    many = tuple(class_use(f"p0.s0.t0.0:h{n}r0", pausing_ns=n + 1) for n in range(11))
    title, _, rows = buffer_rows(many)
    assert len(rows) == 8 < len(of_note(many))
    assert "; 3 more are in buffers.json)" in title


def test_a_run_without_a_switch_says_nothing_of_buffers_and_a_quiet_one_that_nothing_was() -> None:
    assert "buffers" not in as_text(summary(MANIFEST, metrics(), verdict(metrics())))
    assert "buffers: no port stopped its neighbour, dropped or trimmed" in _summary(class_use("p0.s0.t0.0:up0"))
    assert on_page(metrics()) is None


def test_queues_of_a_lab_fit_a_terminal_of_120_columns_in_one_part() -> None:
    lossless = replace(COUNTERS, storms=0, storm_drops=0)
    rows = [{"node": "p0.s0.t0.0", "port": "h1r0", "priority": n} | asdict(lossless) for n in (3, 4, 7)]
    lines = as_text(queues_table("queues", rows, "none"), 120).splitlines()
    assert len(lines) == 2 + len(rows), "a table that is too wide is shown in parts"
    assert max(map(len, lines)) <= 120
    shown = "\n".join(lines)
    for figure in ("361,398", "47,123", "7", "1,234", "4,321", "12,345", "4500", "4499"):
        assert figure in shown


def test_queues_of_a_lab_with_storms_and_trims_have_columns_of_them() -> None:
    row = {"node": "a", "port": "p", "priority": 3} | asdict(replace(COUNTERS, trims=9))
    heads = as_text(queues_table("queues", [row], "none"), 160).splitlines()[1].split()
    assert {"trims", "storms"} <= set(heads)


def test_queues_without_classes_have_no_columns_of_pfc() -> None:
    row = {"node": "a", "port": "p", "priority": None, "queue": 7, "sent_packets": 2, "drops": 0, "marks": None}
    text = as_text(queues_table("queues", [row], "none"), 120)
    assert "XOFF" not in text
    assert " queue " in text
