"""Run folders that somebody else wrote: pages, comparisons and pictures of them are whole, or refused in one line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.commands.compare import compare_
from hpn.commands.graph import graph
from hpn.commands.report import report
from hpn.results.page.page import page
from hpn.results.run.reading import read
from hpn.testbed.errors import InputError, MachineError
from tests.results.hostile import NASTY, NUMBERS, Place, forget_sizes, places, poisoned, put
from tests.results.test_page import seen
from tests.results.whole import whole_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = whole_run(tmp_path_factory.mktemp("hostile") / "run").path
    forget_sizes(folder)
    return folder


@contextmanager
def changed(folder: Path, place: Place, value: object) -> Iterator[None]:
    before = put(folder, place, value)
    yield
    (folder / place.file).write_bytes(before)


def test_texts_of_all_files_are_texts_of_the_page_and_of_comparisons(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run").path
    assert poisoned(folder) > 60
    text = page(read(folder))
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert [tag for tag, _ in seen(text).tags].count("script") == 4 + 2  # data of charts; uPlot and ours
    other = whole_run(tmp_path / "other").path
    across = [part for what in ("drill", "fabric", "engine", "kernel", "settings") for part in ("--across", what)]
    said = CliRunner().invoke(compare_, [str(other), str(folder), *across, "--html", str(tmp_path / "c.html")])
    assert said.exit_code == 0
    assert "\x1b" not in said.output
    assert "<img" not in (tmp_path / "c.html").read_text()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (Place("manifest.json", ("duration_s",)), 1e300),
        (Place("fabric.json", ("planes",)), 2**62),
        (Place("fabric.json", ("nodes", -1, "plane")), None),
        (Place("metrics.json", ("host", "run_delay_mean_pct")), None),
        (Place("metrics.json", ("host", "others_max_1s_pct")), None),
        (Place("paths.jsonl", (0, "plane")), 2**62),
    ],
)
def test_numbers_that_once_ended_a_page_do_so_no_more(run: Path, place: Place, value: object) -> None:
    with changed(run, place, value):
        assert "<h1>" in page(read(run))


@settings(max_examples=60)
@given(data=st.data())
def test_any_number_in_any_place_is_drawn_or_a_gap(run: Path, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(sorted(places(run, (int, float)), key=str)))
    with changed(run, place, data.draw(st.sampled_from(NUMBERS))), suppress(InputError, MachineError):
        assert "<h1>" in page(read(run))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_commands_take_a_folder_cut_anywhere_or_refuse_it(run: Path, tmp_path: Path, share: float) -> None:
    for path in sorted(run.iterdir()):
        folder = tmp_path / path.name
        shutil.copytree(run, folder)
        text = path.read_bytes()
        (folder / path.name).write_bytes(text[: int(len(text) * share)])
        for command, more in ((graph, []), (compare_, [str(run)]), (report, [])):
            if command is report and share and path.name != "series.npz":
                continue  # what cannot be parsed is a gap however much of it is there
            said = CliRunner().invoke(command, [str(folder), *more])
            assert said.exception is None or isinstance(said.exception, InputError | SystemExit), path.name


def test_a_text_that_is_longer_than_any_name_stays_small_in_a_page(run: Path) -> None:
    with changed(run, Place("manifest.json", ("kernel",)), NASTY * 9_000):
        assert len(page(read(run)).encode()) < 150_000
