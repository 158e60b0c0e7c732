"""``--json``: whatever prints a table prints one JSON document instead, and nothing else, with the same exit code."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hpn import cli
from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch import matrix
from hpn.scenarios.run import calibrate, session
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.engines import HOST
from tests.product.hpn import Hpn
from tests.scenarios.campaign.test_campaign import Pretended
from tests.scenarios.measured import link_down
from tests.scenarios.pool.pretended import Pretended as Pool
from tests.scenarios.pool.pretended import here
from tests.scenarios.test_repeats import DRILL, planted

NO_TABLE = {"up", "down", "exec", "shell", "events", "graph"}
NO_TABLE |= {
    "drill show",
    "drill validate",
    "drill new",
    "drill schema",
    "ci schema",
    "topology new",
    "topology export",
    "topology schema",
    "report",
    "export",
    "results export",
    "results prune",
    "vm build-kernel",
    "vm shell",
}
"""Lines of text, a picture, another program's output, or JSON anyway."""


def _leaves(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


COMMANDS = dict(_leaves(cli.command_line))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_json_or_prints_no_table(name: str) -> None:
    command = COMMANDS[name]
    options = {option for parameter in command.params for option in parameter.opts}
    assert ("--json" in options) == (name not in NO_TABLE)
    if name in NO_TABLE:
        assert command.callback is not None
        source = inspect.getsource(command.callback)
        assert re.findall(r"\b(?:show|table|\w+_tables?|console\.print)\(", source) == []


def _document(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, object]:
    capsys.readouterr()
    ended = cli.command_line.main([*arguments, "--json"], prog_name="hpn", standalone_mode=False)
    assert (ended or 0) == code
    found = json.loads(capsys.readouterr().out, parse_constant=_no_json)
    assert isinstance(found, dict)
    return found


def _no_json(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


@pytest.mark.parametrize("arguments", ["presets", "plan tiny", "doctor", "ls", "drill ls"])
def test_stdout_is_one_document(tmp_path: Path, arguments: str) -> None:
    out, _ = Hpn(tmp_path).start(*arguments.split(), "--json").communicate(timeout=60)
    json.loads(out)


@pytest.mark.parametrize(("outages_ms", "code"), [([20], 0), ([80], 1), ([20, 80, 20, 80], 1)])
def test_drill_run_lists_its_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outages_ms: list[int],
    code: int,
) -> None:
    arguments = planted(monkeypatch, tmp_path, DRILL, [link_down(receiver=ms) for ms in outages_ms])
    found = _document(capsys, *arguments, code=code)
    runs, repeats = found["runs"], found["repeats"]
    assert isinstance(runs, list)
    assert isinstance(repeats, list)
    for run in runs:
        files = {
            part: json.loads((Path(run["folder"]) / f"{part}.json").read_text()) for part in run if part != "folder"
        }
        assert files == {part: run[part] for part in ("manifest", "metrics", "verdict")}
    assert len(runs) == len(outages_ms)
    written = tmp_path / "out" / "repeats.json"
    assert repeats == (json.loads(written.read_text()) if len(runs) > 1 else [])


def test_drill_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    planted(monkeypatch, tmp_path, DRILL, [link_down()])
    monkeypatch.setattr(matrix, "ENGINES", {HOST.name: HOST})
    where = ("--engine", "host", "--over", "engine", "--out", str(tmp_path / "out"))
    found = _document(capsys, "drill", "matrix", str(tmp_path / "cut.yaml"), *where)
    assert list(found) == ["runs", "differences"]
    assert list(found["runs"]) == ["base"]  # type: ignore[call-overload]  # a mapping


def test_ci_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    planted(monkeypatch, tmp_path, DRILL, [link_down(receiver=80)] * 2)
    monkeypatch.setattr("hpn.commands.ci.pool_for", lambda *_: Pool(here))
    (tmp_path / "suite.yaml").write_text("suite: s\nruns: [{drills: [./cut.yaml], engines: [host], repeats: 2}]\n")
    found = _document(capsys, "ci", "run", str(tmp_path / "suite.yaml"), "--out", str(tmp_path / "ci"), code=1)
    assert isinstance(found["drills"], list)
    (drill,) = found["drills"]
    assert (found["answer"], drill["answer"], len(drill["runs"])) == ("fail", "fail", 2)
    assert [drill["together"]] == json.loads((tmp_path / "ci" / "repeats.json").read_text())


def test_campaign_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("hpn.commands.campaign.PooledLabs", lambda *_: Pretended())
    out = str(tmp_path / "out")
    found = _document(capsys, "campaign", "run", "tiny", "--sequences", "3", "--out", out)
    assert found["sequences"] == 3
    assert found == _document(capsys, "campaign", "show", out)


def test_reproduce(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _document(capsys, "reproduce", "pod-size", "--engine", "host", "--out", str(tmp_path))
    assert found == json.loads((tmp_path / "reproduction.json").read_text())


def test_doctor_calibrate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [
        calibrate.CalibrationLoad(0.1, 1000.0, True, 1.0, 2.0, ""),
        calibrate.CalibrationLoad(0.2, 2000.0, False, 9.0, 9.0, "busy"),
    ]
    monkeypatch.setattr(calibrate, "calibrate", lambda: iter(steps))
    monkeypatch.setattr(calibrate, "save", lambda _result: None)
    assert cli.command_line.main(["doctor", "--calibrate", "--json"], prog_name="hpn", standalone_mode=False) == 0
    assert [step["clean"] for step in json.loads(capsys.readouterr().out)] == [True, False]


def test_a_run_that_this_machine_refuses_is_no_document_s_business(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No run at all: an empty list, the reason on stderr, the error's exit code."""
    arguments = planted(monkeypatch, tmp_path, DRILL, [])

    def refuse(*_: object) -> RunFolder:
        raise MachineError("no namespaces here")

    monkeypatch.setattr(session, "run", refuse)
    arguments[arguments.index("--repeat") + 1] = "1"
    report = tmp_path / "report.xml"
    assert _document(capsys, *arguments, "--junit", str(report), code=3) == {"runs": [], "repeats": []}
    assert '<error message="no namespaces here"' in report.read_text()
