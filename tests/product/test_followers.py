"""The last line of a command names the one that follows, as it can be typed."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hpn import cli
from hpn.commands.followers import FOLLOWERS, following, tell_next
from tests.docs.commandline import mistakes
from tests.product.hpn import ROOT
from tests.product.test_json import COMMANDS

WITHOUT = {
    "bench": "its figures are the answer",
    "ci schema": "an editor reads it",
    "cite": "a reference manager reads it",
    "config": "its tables are the answer",
    "drill schema": "an editor reads it",
    "events": "it ends with Ctrl-C",
    "exec": "the output is another program's",
    "graph": "a picture is looked at",
    "inspect": "its tables are the answer",
    "results export": "statistics programs read the tables",
    "results prune": "it says itself that --yes deletes",
    "results sql": "only its user knows what the rows are",
    "shell": "the output is another program's",
    "topology schema": "an editor reads it",
    "vm shell": "the output is another program's",
    "watch": "it ends with Ctrl-C",
}
"""Commands behind which none follows, and why."""

WORDS: dict[str, object] = {
    "across": ["engine", "fabric"],
    "changes": ["flaps_a_day=60000"],
    "drill": "link-down",
    "drills": ["link-down", "tor-crash"],
    "preset": "tiny",
    "profile": "production",
    "sport": 50000,
    "topology": "small",
    "too_large": "pod",
}
"""For each {word} what it may be; others are paths or names of anything."""


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.command_line, arguments, prog_name="hpn")


def _words(command: str) -> dict[str, object]:
    names = {name for line in FOLLOWERS[command] for name in re.findall(r"{(\w+)}", line)}
    return {name: WORDS.get(name, "runs/a b") for name in names}


def test_a_command_has_a_follower_or_a_reason_why_not() -> None:
    assert sorted([*FOLLOWERS, *WITHOUT]) == sorted(COMMANDS)


@pytest.mark.parametrize("command", FOLLOWERS)
def test_every_follower_is_a_command_that_exists(command: str) -> None:
    found = list(following(command, _words(command)))  # type: ignore[arg-type]  # texts, numbers and lists of texts
    assert len(found) == len(FOLLOWERS[command])
    for line in found:
        words = shlex.split(line)
        assert words[0] in ("hpn", "wireshark")
        assert mistakes(words) == []


@pytest.mark.parametrize("command", FOLLOWERS)
def test_a_command_with_a_follower_tells_it(command: str) -> None:
    module = inspect.getmodule(COMMANDS[command].callback)
    assert module is not None
    sources = [inspect.getsource(module)]
    if command == "drill run":
        sources.append((ROOT / "commands" / "drill_runs.py").read_text())
    assert any(f'tell_next("{command}"' in source for source in sources)


@pytest.mark.parametrize(
    ("command", "words", "lines"),
    [
        ("drill run", {"run": Path("runs/my run")}, ["hpn report 'runs/my run'"]),
        ("drill run", {"run": Path("-x")}, ["hpn report ./-x"]),
        ("drill run", {"run": Path("a;$(b)`c`'d")}, ["hpn report 'a;$(b)`c`'\"'\"'d'"]),
        ("drill run", {"run": Path("a\x1b[31m")}, []),
        ("drill run", {"run": Path("a\nb")}, []),
        ("drill run", {"run": os.fsdecode(b"a\xff")}, []),
        ("drill run", {"run": "x" * 400}, []),
        ("drill run", {}, []),
        ("drill show", {"drill": "link-down", "topology": None}, ["hpn drill run link-down"]),
        ("drill show", {"drill": "a.yaml", "topology": "b c.yaml"}, ["hpn drill run a.yaml --topology 'b c.yaml'"]),
        ("compare", {"runs": ["a", "b"], "across": ["engine", "fabric"]},
         ["hpn compare a b --across engine --across fabric --html comparison.html"]),
        ("up", {"lab": "a", "part": "p0.s0.h0.r0.0"},
         ["hpn inspect --lab a", "hpn break p0.s0.h0.r0.0 --lab a"]),
    ],
)  # fmt: skip
def test_its_words_are_quoted_for_a_shell_and_what_cannot_be_typed_is_left_out(
    command: str, words: dict[str, Path | str | list[str] | None], lines: list[str]
) -> None:
    assert list(following(command, words)) == lines


def test_it_is_one_line_on_stderr_and_none_where_it_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    tell_next("up", lab="a", part="c0.0")
    tell_next("up", quiet=True, lab="a", part="c0.0")
    assert capsys.readouterr() == ("", "next: hpn inspect --lab a   or: hpn break c0.0 --lab a\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("drill ls", "hpn drill show link-down"),
        ("drill show tor-crash --topology small", "hpn drill run tor-crash --topology small"),
        ("drill validate tor-crash link-down", "hpn drill run tor-crash link-down"),
        ("plan tiny", "hpn up tiny"),
        ("presets", "hpn plan tiny"),
        ("month hpn --months 1 --gpus 64 --set link_repair_h=8", "hpn month --assumptions --set link_repair_h=8"),
    ],
)
def test_it_stands_behind_the_answer(arguments: str, line: str) -> None:
    done = _run(*arguments.split())
    assert done.stderr.splitlines()[-1] == f"next: {line}"
    assert "next:" not in done.stdout
    if "show" not in arguments and "validate" not in arguments:
        assert "next:" not in _run(*arguments.split(), "--json").output


def test_a_plan_too_large_for_this_machine_leads_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpn.testbed.lab.service.preflight.available_memory", lambda: 1 << 20)
    assert _run("plan", "tiny").stderr == "next: hpn model link-down --topology tiny\n"


def test_a_new_drill_is_validated_then_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = _run("drill", "new", "my-crash", "--fault", "tor-crash", "--out", "my crash")
    assert (done.stdout, done.stderr) == ("my crash\n", "next: hpn drill validate './my crash'\n")
    assert _run("drill", "validate", "./my crash").stderr == "next: hpn drill run './my crash'\n"


def test_a_stderr_that_takes_nothing_changes_no_answer(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "cli.py"), "presets"]
    with open("/dev/full", "w") as full:
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=full, env=buffered, check=False)
    assert done.returncode == 0
    assert b"tiny" in done.stdout
