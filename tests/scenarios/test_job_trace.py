"""A job that replays a trace beside its drill file; what is wrong with that file is told with the drill's line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scenarios.drill import job_section
from scenarios.drill.job import plan_of
from scenarios.drill.load import load_drill
from testbed.errors import InputError
from testbed.fabric.build import build
from traffic.collectives.program import Send

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
    monkeypatch.setattr(job_section, "MOST_TRACE_BYTES", 100)
    with pytest.raises(InputError, match="is longer than 100 B; cut it to a few iterations"):
        load_drill(drill)
