"""A run folder read as a whole: what was written comes back, and what is damaged is a gap with a name, never more."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn import cli
from hpn.results.page.time_charts import goodput_chart
from hpn.results.run.fabric import fabric_from, fabric_json
from hpn.results.run.folder import RunFolder, create, load
from hpn.results.run.manifest import FORMAT
from hpn.results.run.reading import read
from hpn.results.run.series import RunSeries, read_series, write_series
from hpn.results.text.contents import rows
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.presets import PRESETS
from tests.results import whole
from tests.results.sample import EVENTS, MANIFEST, metrics, verdict

READERS: dict[str, tuple[str, Callable[[RunFolder], object]]] = {
    "events.jsonl": ("events", RunFolder.events),
    "metrics.json": ("metrics", RunFolder.metrics),
    "verdict.json": ("verdict", RunFolder.verdict),
    "fabric.json": ("fabric", RunFolder.fabric),
    "drill.json": ("drill", RunFolder.drill),
    "series.json": ("series", RunFolder.series),
    "series.npz": ("series", RunFolder.series),
    "host.jsonl": ("host", RunFolder.host),
    "paths.jsonl": ("paths", RunFolder.paths),
    "queue_pairs.jsonl": ("queue pairs", RunFolder.queue_pairs),
    "workers.json": ("workers", RunFolder.workers),
    "spans.jsonl": ("spans", RunFolder.spans),
    "client-spans.jsonl": ("client spans", RunFolder.client_spans),
    "hw_counters.json": ("devices", RunFolder.devices),
    "manifest.json": ("manifest", RunFolder.manifest),
}
LINES = [name for name in READERS if name.endswith(".jsonl")]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return whole.whole_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run(pristine: RunFolder, tmp_path: Path) -> RunFolder:
    for path in pristine.path.iterdir():
        os.link(path, tmp_path / path.name)
    return load(tmp_path)


def _refused(read_it: Callable[[], object]) -> str:
    """Why it cannot be read; '' when it can."""
    try:
        read_it()
    except InputError as error:
        return str(error)
    return ""


def _instead(run: RunFolder, name: str, content: bytes) -> None:
    (run.path / name).unlink()
    (run.path / name).write_bytes(content)


def test_every_part_comes_back_as_it_was(run: RunFolder) -> None:
    found = read(run.path)
    assert found.gaps == ()
    assert (found.manifest.format, found.manifest.drill) == (FORMAT, "link-down")
    assert (found.fabric, found.drill, found.events) == (whole.FABRIC, whole.DRILL, EVENTS)
    assert (found.metrics, found.verdict) == (metrics(), verdict(metrics()))
    assert (found.host, found.paths, found.queue_pairs) == (whole.HOST, whole.PATHS, whole.QUEUE_PAIRS)
    assert (found.workers, found.spans, found.client_spans) == (whole.WORKERS, whole.SPANS, whole.SPANS)
    assert run.devices() == json.loads(whole.DEVICES)


def test_series_come_back_number_for_number(run: RunFolder) -> None:
    found, wanted = run.series(), whole.series()
    assert found.streams is not None
    assert found.messages is not None
    assert found.ports is not None
    assert wanted.streams is not None
    assert wanted.messages is not None
    assert wanted.ports is not None
    assert (found.streams.bins, found.streams.flows) == (wanted.streams.bins, wanted.streams.flows)
    for name in ("sent", "received", "delay_us"):
        assert np.array_equal(getattr(found.streams, name), getattr(wanted.streams, name))
    assert np.array_equal(found.messages.size_bytes, wanted.messages.size_bytes)
    assert found.stamps is not None
    assert wanted.stamps is not None
    for name in ("took_us", "wait_us"):
        assert np.array_equal(getattr(found.stamps, name), getattr(wanted.stamps, name))
    assert found.ports.sampling == wanted.ports.sampling
    pairs = zip(found.ports.series, wanted.ports.series, strict=True)
    assert all(one.packed() == other.packed() and one.port == other.port for one, other in pairs)


def test_arrivals_are_stored_where_goodput_counts_them_and_nowhere_else(tmp_path: Path) -> None:
    wanted, paths = whole.series().streams, [tmp_path / "sent", tmp_path / "arrived"]
    assert wanted is not None
    for path, streams in zip(paths, (wanted, replace(wanted, arrived=wanted.received[:, ::-1])), strict=True):
        path.mkdir()
        write_series(path, RunSeries(streams))
    assert "arrivals" not in json.loads((paths[0] / "series.json").read_text())
    first, second = (read_series(path).streams for path in paths)
    assert first is not None
    assert second is not None
    assert np.array_equal(first.goodput_packets, wanted.received)
    assert np.array_equal(second.goodput_packets, wanted.received[:, ::-1])
    titles = [chart.title for streams in (first, second) if (chart := goodput_chart(streams, None, ())) is not None]
    assert [title.rpartition(", ")[2] for title in titles] == ["by when it was sent", "when it arrived"]


@pytest.mark.parametrize("name", ["tiny", "tiny-stacked", "tiny-dcn-plus", "tiny-rail-only", "tiny-fat-tree", "small"])
def test_a_fabric_comes_back_equal(name: str) -> None:
    fabric = load_fabric(name)
    assert fabric_from(Path("f"), fabric_json(fabric)) == fabric
    assert name in PRESETS


def test_equal_runs_are_equal_bytes(tmp_path: Path) -> None:
    runs = [whole.whole_run(tmp_path / name) for name in ("one", "other")]
    files = [{path.name: path.read_bytes() for path in run.path.iterdir()} for run in runs]
    assert files[0] == files[1]
    assert {*READERS} <= files[0].keys()


@pytest.mark.parametrize("name", READERS)
def test_a_file_cut_anywhere_is_named(run: RunFolder, name: str) -> None:
    """At twenty places each; what is cut between two lines only its size tells, and ``read`` looks at that."""
    text = (run.path / name).read_bytes()
    for at in range(20):
        _instead(run, name, text[: len(text) * at // 20])
        said = _refused(lambda: READERS[name][1](run))
        assert name in said or (not said and name in LINES)


@pytest.mark.parametrize("name", LINES)
def test_a_file_cut_between_two_lines_is_a_gap(run: RunFolder, name: str) -> None:
    lines = (run.path / name).read_bytes().splitlines(keepends=True)
    _instead(run, name, b"".join(lines[:-1]))
    (gap,) = read(run.path).gaps
    assert gap.part == READERS[name][0]
    assert "it was cut or edited" in gap.why


@pytest.mark.parametrize("name", READERS)
def test_a_missing_file_is_a_gap_and_the_manifest_an_error(run: RunFolder, name: str) -> None:
    (run.path / name).unlink()
    if name == "manifest.json":
        with pytest.raises(InputError, match="is not a run folder"):
            read(run.path)
        return
    found = read(run.path)
    expected = [] if name == "hw_counters.json" else [READERS[name][0]]  # its fabric has no Soft-RoCE
    assert [gap.part for gap in found.gaps] == expected
    if name == "fabric.json":
        assert (found.fabric, found.metrics) == (None, metrics())


@pytest.mark.parametrize("how", ["link out", "folder", "fifo"])
@pytest.mark.parametrize("name", ["manifest.json", "events.jsonl", "series.npz", "fabric.json"])
def test_what_is_no_file_of_the_folder_is_not_opened(run: RunFolder, tmp_path: Path, name: str, how: str) -> None:
    path, elsewhere = run.path / name, tmp_path.parent / "elsewhere.json"
    elsewhere.write_bytes(path.read_bytes())
    path.unlink()
    match how:
        case "link out":
            path.symlink_to(elsewhere)
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
    with pytest.raises(InputError, match=r"(leads out of the run folder|is not a regular file|is not a run folder)"):
        READERS[name][1](load(run.path))


def test_a_link_within_the_folder_is_a_file_like_any_other(run: RunFolder) -> None:
    (run.path / "events.jsonl").rename(run.path / "worker-0.log")
    (run.path / "events.jsonl").symlink_to("worker-0.log")
    assert run.events() == EVENTS


NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400, "1" + "0" * 400 + ".5", "1" * 5000]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12])
@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("metrics.json", '"noise_floor_ms": '),
        ("verdict.json", '"limit": '),
        ("events.jsonl", '"skew_ns":'),
        ("host.jsonl", '"idle_pct":'),
        ("fabric.json", '"rate_bps":'),
        ("drill.json", '"limit": '),
        ("workers.json", '"cpu_s": '),
        ("queue_pairs.jsonl", '"packets":'),
        ("series.json", '"start_ns":'),
        ("manifest.json", '"duration_s": '),
    ],
)
def test_what_is_no_number_is_damage(run: RunFolder, name: str, before: str, number: str) -> None:
    head, found, rest = (run.path / name).read_text().partition(before)
    assert found
    end = next(at for at, sign in enumerate(rest) if sign in ",}\n")
    _instead(run, name, f"{head}{before}{number}{rest[end:]}".encode())
    with pytest.raises(InputError, match=rf"{name} is damaged or of another version") as caught:
        READERS[name][1](run)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text", ["NaN", "1e999", "p0.s1e1000", "</script>", "'; DROP TABLE runs; --", "\x1b[2J\n\u202e"]
)
def test_texts_are_texts_whatever_they_say(run: RunFolder, text: str) -> None:
    run.write_events([replace(EVENTS[0], subject=text)])
    assert run.events()[0].subject == text
    _instead(run, "drill.json", b"")
    run.write_drill(replace(whole.DRILL, name=text))
    said = [value for row in rows(read(run.path)) for value in row.values()]
    assert all(value.isprintable() for value in said)


def test_half_a_surrogate_of_a_command_line_or_a_drill_file_is_written_as_a_question_mark(run: RunFolder) -> None:
    for name in ("manifest.json", "drill.json", "events.jsonl"):
        (run.path / name).unlink()
    run.write_manifest(replace(MANIFEST, command=("a\udc80",)))
    run.write_drill(replace(whole.DRILL, summary="d\udfff e"))
    run.write_events([replace(EVENTS[0], detail={"said": "f\ud800"})])
    found = read(run.path)
    assert found.drill is not None
    assert found.events is not None
    assert found.manifest.command == ("a?",)
    assert (found.drill.summary, found.events[0].detail) == ("d? e", {"said": "f?"})


def test_a_name_of_ten_megabytes_is_shown_short(run: RunFolder) -> None:
    text = (run.path / "fabric.json").read_text().replace('"p0.s0.h0"', json.dumps("h" * 10_000_000), 1)
    _instead(run, "fabric.json", text.encode())
    with pytest.raises(InputError, match=r"a node is called 'hhh") as caught:
        run.fabric()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("number", [0, 3, 99, -1])
def test_a_format_that_is_not_known_is_said(run: RunFolder, number: int) -> None:
    _instead(run, "manifest.json", json.dumps({"format": number, "who": "knows"}).encode())
    with pytest.raises(InputError, match=rf"has format {number}, this hpn reads 1 and 2; use the hpn that made"):
        read(run.path)


def test_format_1_is_read_and_its_gaps_are_named(tmp_path: Path) -> None:
    run, found = create(tmp_path), metrics()
    run.write_events(EVENTS)
    run.write_metrics(found)
    run.write_manifest(replace(MANIFEST, format=1))
    run.write_verdict(verdict(found))
    old = read(tmp_path)
    assert (old.metrics, old.events, old.verdict) == (found, EVENTS, verdict(found))
    assert {gap.part for gap in old.gaps} == {"fabric", "drill", "series", "host", "paths", "queue pairs", "workers"}
    assert {gap.why for gap in old.gaps} == {"format 1 of run folders has none"}


def _without(data: dict[str, object], key: str) -> None:
    rows_of = data[key]
    assert isinstance(rows_of, list)
    rows_of.pop(0)


def _twice(data: dict[str, object], key: str) -> None:
    rows_of = data[key]
    assert isinstance(rows_of, list)
    rows_of.append(rows_of[0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: _without(data, "nodes"), "does not join two nodes"),
        (lambda data: _without(data, "links"), "has links that are not its host's"),
        (lambda data: _without(data, "nics"), "an access link has no NIC"),
        (lambda data: _twice(data, "nodes"), "two nodes are called"),
        (lambda data: _twice(data, "nics"), "two NICs are called"),
        (lambda data: data["links"][0].update(rate_bps=0), "0 bit/s"),
        (lambda data: data["links"][0].update(plane=7), "has plane 7"),
        (lambda data: data.update(planes=2**62), "planes share 32 links"),
        (lambda data: data["nodes"][0].update(name="\x1b[2J"), "a node is called '"),
    ],
)
def test_a_fabric_that_leads_nowhere_is_damage(run: RunFolder, change: Callable[[object], None], said: str) -> None:
    data = json.loads((run.path / "fabric.json").read_text())
    change(data)
    _instead(run, "fabric.json", json.dumps(data).encode())
    with pytest.raises(InputError, match=said):
        run.fabric()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"count":10', '"count":11', "not"),
        ('"count":10', '"count":-1', "its bins are none"),
        ('"width_ns":10000000', '"width_ns":0', "its bins are none"),
        ('"count":10', '"count":99999999', "it lasted longer than a day"),
        ('"flow":1', '"flow":0', "two flows have one id"),
        ('"readings":[5,5]', '"readings":[5]', "do not add up"),
        ('"readings":[5,5]', '"readings":[15,-5]', "do not add up"),
    ],
)
def test_series_that_no_run_has_are_damage(run: RunFolder, old: str, new: str, said: str) -> None:
    text = (run.path / "series.json").read_text()
    assert old in text
    _instead(run, "series.json", text.replace(old, new, 1).encode())
    with pytest.raises(InputError, match=said):
        run.series()


@given(at=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_arrays_with_any_byte_changed_are_read_or_refused(pristine: RunFolder, at: int, byte: int) -> None:
    folder = pristine.path.parent / "changed"
    folder.mkdir(exist_ok=True)
    content = bytearray((pristine.path / "series.npz").read_bytes())
    content[at % len(content)] = byte
    (folder / "series.npz").write_bytes(content)
    (folder / "series.json").write_bytes((pristine.path / "series.json").read_bytes())
    said = _refused(RunFolder(folder).series)
    assert not said or "series.npz" in said


def test_the_command_tells_what_a_folder_holds_and_what_it_lacks(
    run: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (run.path / "paths.jsonl").unlink()
    asked = ["inspect", "run", str(run.path)]
    cli.command_line.main(asked, prog_name="hpn", standalone_mode=False)
    assert "16 nodes, 32 links, 8 NICs, 2 planes" in capsys.readouterr().out
    cli.command_line.main([*asked, "--json"], prog_name="hpn", standalone_mode=False)
    found = {row["part"]: row for row in json.loads(capsys.readouterr().out)}
    streams = "2 streams in 10 bins of 10 ms"
    assert found["series"]["holds"] == f"{streams}, 1 queue pairs in 10 bins of 10 ms, 2 ports tor down"
    assert found["drill"]["holds"] == "link-down: 1 faults, 1 expectations"
    assert "paths.jsonl: No such file" in found["paths"]["gap"]
    assert [part for part, row in found.items() if row["gap"]] == ["paths"]


NASTY = "</script><!--'\"; DROP TABLE runs; --\n\x1b[2J\u202e{{7*7}}" + "x" * 5000


def _strings(data: object, seen: set[str]) -> Iterator[tuple[dict[str, object], str]]:
    """A place of a text for each key that has one."""
    if isinstance(data, list):
        for each in data:
            yield from _strings(each, seen)
    elif isinstance(data, dict):
        for key, value in data.items():
            if isinstance(value, str) and key not in seen:
                seen.add(key)
                yield data, key
            yield from _strings(value, seen)


@pytest.mark.parametrize("name", [name for name in READERS if name.endswith((".json", ".jsonl"))])
def test_any_text_in_any_place_is_read_or_refused_in_one_line_that_can_be_shown(run: RunFolder, name: str) -> None:
    lines = [json.loads(line) for line in (run.path / name).read_text().splitlines()] if name in LINES else None
    data = json.loads((run.path / name).read_text()) if lines is None else lines
    for place, key in _strings(data, set()):
        before, place[key] = place[key], NASTY
        text = json.dumps(data) if lines is None else "".join(f"{json.dumps(line)}\n" for line in lines)
        _instead(run, name, text.encode())
        said = _refused(lambda: READERS[name][1](run))
        assert said.isprintable()
        assert len(said) < 600
        if name != "manifest.json" or not said:
            shown = [value for row in rows(read(run.path)) for value in row.values()]
            assert all(value.isprintable() and len(value) < 300 for value in shown)
        place[key] = before
