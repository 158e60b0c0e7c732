"""A job that replays a trace beside its drill file; what is wrong with that file is told with the drill's line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hpn.scenarios.drill import trace_files
from hpn.scenarios.drill.job import plan_of
from hpn.scenarios.drill.load import load_drill
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.traffic.collectives.program import Send

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "jobs"


@pytest.fixture
def drill(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    return tmp_path / "trace.yaml"


def test_the_example_replays_both_collectives_at_every_rank(drill: Path) -> None:
    loaded = load_drill(drill)
    assert loaded.job is not None
    plan = plan_of(loaded.job, build(loaded.topology))
    assert [program.rank for program in plan.programs] == [0, 1, 2, 3]
    sent = 0
    for program in plan.programs:
        assert [span.kind for span in program.spans][1:] == ["all-reduce", "all-gather"]
        sent += sum(op.piece.size_bytes for op in program.ops if isinstance(op, Send))
    assert sent == 2 * (4 - 1) * 1_000_000 + (4 - 1) * 1_000_000


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "No such file or directory; name a file beside the drill"),
        (b"\xff\xfe", "it is no text; name a file beside the drill"),
        (b"{", r"trace.json:1: not JSON"),
        (b"[]", "a trace is a JSON list of entries"),
        (b'[{"comms": "gather"}]', "entry 1"),
        (b'[{"comms": "all_reduce", "in_msg_size": 1, "dtype": "int8", "global_ranks": [0, 9]}]', "rank"),
    ],
)
def test_a_trace_that_cannot_be_replayed_is_told_with_the_line_that_names_it(
    drill: Path, content: bytes | None, told: str
) -> None:
    trace = drill.with_name("trace.json")
    trace.unlink() if content is None else trace.write_bytes(content)
    with pytest.raises(InputError, match=told) as error:
        load_drill(drill)
    assert all(problem.startswith("trace.yaml:") or str(drill) in problem for problem in error.value.problems)


def test_a_trace_beyond_all_measure_is_not_read(drill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_files, "MOST_TRACE_BYTES", 100)
    with pytest.raises(InputError, match="is longer than 100 B; cut it to a few iterations"):
        load_drill(drill)


@pytest.fixture
def chakra(drill: Path) -> Path:
    return drill.with_name("chakra.yaml")


def test_the_example_of_chakra_replays_what_each_file_has_for_its_rank(chakra: Path) -> None:
    loaded = load_drill(chakra)
    assert loaded.job is not None
    plan = plan_of(loaded.job, build(loaded.topology))
    sent = 0
    for rank, program in enumerate(plan.programs):
        first = ["compute", "arrival"] if rank % 2 else ["compute", "message"]
        kinds = [span.kind for span in program.spans][1:]
        assert sorted(kinds[:2]) == sorted(first)
        assert kinds[2:] == ["compute", "all-reduce", "all-gather"]
        sent += sum(op.piece.size_bytes for op in program.ops if isinstance(op, Send))
    assert sent == 2 * 250_000 + 2 * (4 - 1) * 1_000_000 + (4 - 1) * 4 * 62_500


def test_a_trace_that_grows_while_it_is_read_is_not_read_whole(drill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file of /proc: it says that it is empty."""
    monkeypatch.setattr(trace_files, "MOST_TRACE_BYTES", 100)
    with pytest.raises(InputError, match="is longer than 100 B"):
        trace_files._read(Path("/proc/self/status"), 100)


def test_a_chakra_trace_of_another_name_is_that_of_all_ranks(chakra: Path) -> None:
    attr = '[{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "9"}]'
    all_reduce = f'{{"id": "1", "type": "COMM_COLL_NODE", "attr": {attr}}}'
    chakra.with_name("all.json").write_text("{}\n" + all_reduce)
    chakra.write_text(chakra.read_text().replace("chakra.0.json", "all.json"))
    loaded = load_drill(chakra)
    assert loaded.job is not None
    assert len(plan_of(loaded.job, build(loaded.topology)).programs) == 4


@pytest.mark.parametrize(
    ("rank", "content", "told"),
    [
        (2, None, r"chakra.2.json is missing, and there is chakra.3.json; a trace has a file for each rank"),
        (3, None, r"a trace of 3 ranks \(chakra.0.json to chakra.2.json\) is for as many GPUs; the job has 4"),
        (0, None, r"No such file or directory; name a file beside the drill"),
        (4, b"{}", r"chakra.4.json: the trace has no node"),
        (1, b"\xff", r"it is no text"),
        (1, b"[]", r"chakra.1.json: a Chakra trace is JSON objects"),
        (1, b'{}{"id": "1"}', r"chakra.1.json: 0 collectives of ranks 0, 1, 2, 3, and chakra.0.json has 2"),
    ],
)
def test_a_chakra_trace_that_cannot_be_replayed_is_told_with_the_line_that_names_it(
    chakra: Path, rank: int, content: bytes | None, told: str
) -> None:
    trace = chakra.with_name(f"chakra.{rank}.json")
    trace.unlink() if content is None else trace.write_bytes(content)
    with pytest.raises(InputError, match=told) as error:
        load_drill(chakra)
    line = next(at for at, text in enumerate(chakra.read_text().splitlines(), 1) if "trace:" in text)
    assert all(f"chakra.yaml:{line}: " in problem for problem in error.value.problems)


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("chakra.1.json", "chakra.1.json is of rank 1 alone; name chakra.0.json"),
        (".", "it is no regular file"),
        ('"a\\0b"', "no file has such a name"),
    ],
)
def test_what_is_no_file_of_the_first_rank_is_refused(chakra: Path, named: str, told: str) -> None:
    chakra.write_text(chakra.read_text().replace("chakra.0.json\n  gpus", f"{named}\n  gpus"))
    with pytest.raises(InputError, match=told):
        load_drill(chakra)


def test_the_files_of_all_ranks_together_have_a_measure(chakra: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_files, "MOST_TRACE_BYTES", 3000)
    with pytest.raises(InputError, match=r"chakra.2.json, with those .* before it, is longer than 3 KB"):
        load_drill(chakra)


def test_their_measure_is_in_bytes(chakra: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = chakra.with_name("chakra.0.json")
    first.write_text(first.read_text().replace('"name": "', '"name": "' + 500 * "\N{SNOWMAN}", 1))
    files = [chakra.with_name(f"chakra.{rank}.json") for rank in range(4)]
    monkeypatch.setattr(trace_files, "MOST_TRACE_BYTES", sum(len(each.read_bytes()) for each in files))
    assert load_drill(chakra).job is not None
    monkeypatch.setattr(trace_files, "MOST_TRACE_BYTES", sum(len(each.read_bytes()) for each in files) - 1)
    with pytest.raises(InputError, match=r"chakra.3.json, with those of the ranks before it, is longer than"):
        load_drill(chakra)


def test_the_first_rank_s_file_is_missed_too(chakra: Path) -> None:
    chakra.with_name("chakra.0.json").unlink()
    chakra.write_text(chakra.read_text().replace("chakra.0.json\n  gpus", "chakra.1.json\n  gpus"))
    with pytest.raises(InputError, match=r"chakra.0.json is missing, and there is chakra.3.json"):
        load_drill(chakra)
