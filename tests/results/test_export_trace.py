"""A run as a trace for Perfetto: a reader of our own holds the file against the rules of the trace event format."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.failover.analysis.job import SpanTime
from hpn.results.export.timeline import trace_of
from hpn.results.export.trace import Count, Instant, Slice, Trace
from hpn.results.run.figures import Timelines
from hpn.results.run.reading import read
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event, EventKind
from tests.failover.synthetic import MS, S
from tests.product.hpn import Hpn
from tests.results.sample import EVENTS, MANIFEST
from tests.results.whole import whole_run

_Event = dict[str, Any]
_NEEDS = {
    "M": {"name", "pid", "tid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
    "i": {"name", "cat", "pid", "tid", "ts", "s"},
    "C": {"name", "pid", "ts", "args"},
    "s": {"name", "cat", "pid", "tid", "ts", "id"},
    "f": {"name", "cat", "pid", "tid", "ts", "id", "bp"},
}


def _no_number(word: str) -> NoReturn:
    raise AssertionError(f"{word} is not JSON")


def checked(content: bytes) -> list[_Event]:
    """The events of a file that keeps the format's rules; AssertionError says which it breaks."""
    found = json.loads(content, parse_constant=_no_number)
    events: list[_Event] = found["traceEvents"]
    assert found["displayTimeUnit"] in {"ms", "ns"}
    named: dict[str, set[tuple[int, int]]] = defaultdict(set)
    slices: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        assert event["ph"] in _NEEDS, f"phase {event['ph']!r}"
        assert set(event) >= _NEEDS[event["ph"]], event
        if event["ph"] == "M":
            named[event["name"]].add((event["pid"], event["tid"]))
            assert event["args"].keys() <= {"name", "sort_index"}
            continue
        assert isinstance(event["ts"], int | float), event
        assert event["ts"] >= 0, event
        if event["ph"] == "X":
            assert event["dur"] > 0, event
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] == "i":
            assert event["s"] in {"g", "p", "t"}
        elif event["ph"] == "C":
            assert event["args"]
            assert all(type(value) in (int, float) for value in event["args"].values()), event
    for event in events:
        if event["ph"] in {"X", "i", "s", "f"}:
            assert (event["pid"], event["tid"]) in named["thread_name"], f"a track without a name: {event}"
        assert (event["pid"], 0) in named["process_name"], f"a process without a name: {event}"
    for of_thread in slices.values():
        of_thread.sort()
        for (_, end), (begin, _) in pairwise(of_thread):
            assert begin >= end - 1e-4, "slices of a thread that cross"
    _check_arrows(events, slices)
    return events


def _check_arrows(events: list[_Event], slices: dict[tuple[int, int], list[tuple[float, float]]]) -> None:
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert len(starts) == sum(event["ph"] == "s" for event in events), "two arrows of one number"
    for number, start in starts.items():
        end = ends[number]
        assert (start["name"], start["cat"]) == (end["name"], end["cat"])
        assert start["ts"] <= end["ts"]
        for each in (start, end):
            lane = slices[each["pid"], each["tid"]]
            assert any(begin <= each["ts"] < until for begin, until in lane), "an arrow that no slice holds"


def _track(events: list[_Event], pid: str, tid: str | None = None) -> list[_Event]:
    processes = {e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == pid}
    threads = {
        (e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and (tid is None or e["args"]["name"] == tid)
    }
    found = [e for e in events if e["pid"] in processes and e["ph"] != "M"]
    return [e for e in found if tid is None or (e["pid"], e["tid"]) in threads]


def test_a_run_is_a_trace_with_all_that_its_folder_tells(tmp_path: Path) -> None:
    run = read(whole_run(tmp_path / "run").path)
    metrics = run.metrics
    assert metrics is not None
    events = checked(trace_of(run))
    edges = _track(events, "faults", "edges, each until the next")
    assert [each["name"] for each in edges if each["ph"] == "X"] == [each.edge.label for each in metrics.edges]
    outages = {f.name: len(f.longest_outages) for f in metrics.flows if f.longest_outages}
    seen = {name: sum(e["ph"] == "X" for e in _track(events, "outages of flows", name)) for name in outages}
    assert seen == outages
    assert sum(outages.values()) > 0, "there is something to see"
    assert sum(e["ph"] == "s" for e in events) == sum(outages.values()), "each outage has its edge"
    instants = Counter(e["name"] for e in events if e["ph"] == "i")
    wanted = Counter(" ".join(filter(None, (e.subject, e.what))) for e in EVENTS)
    assert instants == wanted
    assert {e["name"] for e in _track(events, "p0.s0.t0.0", "route")} == {"10.0.0.1/32 host-route-removed"}
    assert [e["name"] for e in _track(events, "paths of flows") if e["ph"] == "X"] == [
        "plane 0 (begin)",
        "plane 1 (LAG)",
        "no path (LAG)",
    ]
    assert [e["name"] for e in _track(events, "ranks", "rank 0")] == ["sum"]
    counters = {e["name"] for e in events if e["ph"] == "C"}
    assert {"goodput, all", "host idle_pct", "host lag_ms", "queue of t:1"} <= counters
    goodput = [e["args"]["bit/s"] for e in events if e["name"] == "goodput, all"]
    assert goodput[-1] == (9 // 2 + 19 // 2) * 4096 * 8 / 0.01


def test_times_are_microseconds_since_the_earliest(tmp_path: Path) -> None:
    content = trace_of(read(whole_run(tmp_path / "run").path))
    origin_ns = json.loads(content)["otherData"]["origin_ns"]
    events = checked(content)
    edge = next(e for e in events if e["name"].endswith("failure 0") and e["ph"] == "X")
    assert (origin_ns, edge["ts"]) == (S, 3e6)
    moved = next(e for e in events if e["name"].startswith("r0.0 carrier-down"))
    assert moved["ts"] - edge["ts"] == pytest.approx(500)
    assert min(e["ts"] for e in events if e["ph"] != "M") == 0


def test_what_a_folder_lacks_is_named_and_nothing_at_all_is_refused(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "run")
    (run.path / "metrics.json").write_text("{")
    (run.path / "series.npz").unlink()
    content = trace_of(read(run.path))
    events = checked(content)
    missing = json.loads(content)["otherData"]["missing"]
    assert [line.partition(":")[0] for line in missing] == ["metrics", "series"]
    assert _track(events, "p0.s0.h0", "lag")
    (run.path / "events.jsonl").write_bytes(b"\0")
    with pytest.raises(InputError, match="has no timeline"):
        trace_of(read(run.path))


def test_a_run_that_ended_early_has_what_happened_until_then(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "run")
    for path in run.path.iterdir():
        if path.name not in {"manifest.json", "events.jsonl"}:
            path.unlink()
    run.write_manifest(MANIFEST)
    assert {e["name"] for e in checked(trace_of(read(run.path))) if e["ph"] == "i"} > {"link inject"}


def test_names_of_anybody_are_text_and_short(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "run")
    name = "</script>\x1b[31m\u2028\n\"'" + "x" * 100_000
    run.write_events([Event(S, EventKind.LINK, name, name, "carrier-down", {name: name}), *EVENTS])
    run.write_manifest(replace(run.manifest(), drill=name, files=run.sizes()))
    content = trace_of(read(run.path))
    assert b"\x1b" not in content
    assert max(len(str(value)) for event in checked(content) for value in event.values()) < 2000


def test_spans_that_cross_lie_in_tracks_of_their_own(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "run")
    spans = [SpanTime(0, 0, f"bucket {at}", "all-reduce", S + at * MS, S + (at + 3) * MS, 0) for at in range(6)]
    run.write_metrics(run.metrics(), Timelines(tuple(spans)))
    run.write_manifest(replace(run.manifest(), files=run.sizes()))
    events = checked(trace_of(read(run.path)))
    tracks = {e["tid"] for e in _track(events, "ranks") if e["name"].startswith("bucket")}
    assert len(tracks) == 3, "three at once at most"


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(-2, 10)), max_size=30))
def test_any_slices_make_a_file_that_keeps_the_rules(spans: list[tuple[int, int]]) -> None:
    trace = Trace()
    pid = trace.process("p")
    found = [Slice(begin * 1000, (begin + length) * 1000, "x") for begin, length in spans]
    placed = trace.slices(pid, "t", found)
    for cause, effect in pairwise(placed):
        trace.arrow(cause, effect)
    trace.instants(pid, "i", [Instant(5, "now", everywhere=True)])
    trace.counter(pid, "c", [Count(1, {"a": 1.0}), Count(2, {"a": 1.0}), Count(3, {"a": 2.0}), Count(4, {})])
    events = checked(trace.document({}))
    assert sum(e["ph"] == "X" for e in events) == len(spans)
    assert [e["args"] for e in events if e["ph"] == "C"] == [{"a": 1.0}, {"a": 2.0}]
    lanes = {e["tid"] for e in events if e["ph"] == "X"}
    drawn = [(each.begin_ns, each.begin_ns + each.length_ns) for each in found]
    most = max((sum(begin <= at < end for begin, end in drawn) for at, _ in drawn), default=0)
    assert len(lanes) == most, "no more tracks than there are slices at once"


def test_the_command_writes_it_and_refuses_in_one_line(tmp_path: Path) -> None:
    hpn = Hpn(tmp_path)
    run = whole_run(tmp_path / "run")
    (run.path / "host.jsonl").write_text("")
    said = hpn.run("export", "run", "--out", "x.json")
    assert "missing: host" in said
    checked((tmp_path / "x.json").read_bytes())
    assert hpn.run("export", "run", "--out", "x.txt", code=2).count("\n") == 1
    assert "cannot write" in hpn.run("export", "run", "--out", "no/x.json", code=2)
    assert "capture: {}" in hpn.run("export", "run", "--out", "x.pcapng", code=2)
    assert "is not a run folder" in hpn.run("export", "nowhere", "--out", "x.json", code=2)
