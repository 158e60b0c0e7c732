"""What the command says without any lab: plans, refusals, exit codes."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hpn import cli
from hpn.commands import COMMANDS
from hpn.commands import drill as drill_commands
from hpn.commands.next_step import told
from hpn.commands.page import terminal
from hpn.results.index.queries import RunLine
from hpn.scenarios.drill import catalogue
from hpn.scenarios.run.run_order import Batch
from hpn.testbed.fabric.presets import PRESETS
from hpn.traffic.client.clients.torch import Torch
from tests.product.hpn import ROOT, Hpn


@pytest.fixture
def hpn(tmp_path: Path) -> Hpn:
    return Hpn(tmp_path)


def test_help_lists_every_command_once_below_its_section(hpn: Hpn) -> None:
    _, *sections = re.split(r"(?m)^(Drills|Labs|Results|This machine):$", hpn.run("--help"))
    listed = {title: re.findall(r"(?m)^  (\S+) ", text) for title, text in zip(*[iter(sections)] * 2, strict=True)}
    assert listed["Drills"][0] == "drill"
    assert "up" in listed["Labs"]
    assert sorted(name for names in listed.values() for name in names) == sorted(COMMANDS)


def test_alone_it_says_what_to_do_next_and_ran_nothing(hpn: Hpn) -> None:
    assert "Begin here: hpn doctor" in hpn.run(code=2)
    run = hpn.state / "runs" / "my run"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text("{}")
    assert "came to no verdict: hpn report" in hpn.run(code=2)


def test_next_steps_name_each_lab_and_the_newest_run() -> None:
    newest = RunLine("runs/my run", "tor-crash", "fail", "tiny", "uml", "6.12", "", 1.0, "")
    assert list(told(["a", "b"], newest)) == [
        "Lab a is up: hpn watch --lab a, hpn inspect --lab a, hpn down a",
        "Lab b is up: hpn watch --lab b, hpn inspect --lab b, hpn down b",
        "The newest run, tor-crash, failed: hpn report 'runs/my run'",
    ]


def test_plan_of_a_pod_gives_the_papers_numbers(hpn: Hpn) -> None:
    found = json.loads(hpn.run("plan", "pod", "--json"))
    assert (found["gpus"], found["tors"], found["aggs"]) == (15_360, 240, 120)
    counts = {(link["kind"], link["spare"]): link["count"] for link in found["links"]}
    assert (counts["access", False], counts["fabric", False]) == (30_720, 14_400)


@pytest.mark.parametrize(
    ("text", "command", "words"),
    [
        ("preset: tiny", "drill validate", "is a topology file, a drill file is needed; this one is for: hpn plan"),
        ("drill: mine", "plan", "is a drill file, a topology file is needed; this one is for: hpn drill run"),
        ("drill: mine", "ci run", "is a drill file, a suite file is needed; this one is for: hpn drill run"),
        ("suite: mine", "drill show", "is a suite file, a drill file is needed; this one is for: hpn ci run"),
        (
            "{preset: tiny, nic_port_rate: 400}",
            "plan",
            "400 bit/s is below 1 Mbit/s; write a rate with its unit, such as",
        ),
    ],
)
def test_a_file_of_another_kind_and_a_rate_without_unit_are_one_line(
    hpn: Hpn, tmp_path: Path, text: str, command: str, words: str
) -> None:
    (file := tmp_path / "mine.yaml").write_text(text)
    (said,) = hpn.run(*command.split(), str(file), code=2).splitlines()
    assert words in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "nope"), "no preset 'nope'"),
        (("up", "tiny", "--name", "../x"), "is no lab name"),
        (("exec", "p0.s0.h0", "--", "true"), "no lab is up"),
        (("inspect",), "no lab is up"),
        (("graph",), "no lab is up"),
        (("graph", "tiny", "--mark", "p0.s0.h9"), "did you mean p0.s0.h"),
        (("graph", "tiny", "--load", "1 s"), "leave the topology or run folder out"),
        (("graph", "tiny", "--out", "/nowhere/x.svg"), "cannot write /nowhere/x.svg"),
        (("drill", "run", "link-dwn"), "did you mean link-down"),
        (("graph", "tiny", "--out", "x.png"), "x.png ends in .png, which is not drawn; end it in .svg or .dot"),
        (("drlil",), "Did you mean hpn drill?"),
        (("run", "link-down"), "Did you mean hpn drill run or hpn campaign run or hpn ci run?"),
        (("list",), "Did you mean hpn ls?"),
        (("drill", "show", "/nowhere.yaml"), "no such file"),
        (("down", "Bad Name"), "is no lab name"),
        (("campaign", "run", "--seed", "9" * 30), "is not in the range 0<=x<="),
        (("campaign", "run", "--sequences", "1000000000"), "is not in the range 1<=x<=1000000"),
        (("drill", "run", "link-down", "--raise-neighbour-limit", "--engine", "uml"), "a guest of engine uml has its"),
        (("drill", "run", "link-down", "--junit", "/nowhere/report.xml"), "choose another --junit"),
        (("drill", "run", "link-down", "--summary", "/nowhere/page.md"), "choose another --summary"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(hpn: Hpn, arguments: tuple[str, ...], words: str) -> None:
    said = hpn.run(*arguments, code=2)
    assert words in said
    assert "Traceback" not in said


def test_every_mistake_of_a_drill_file_is_told_at_once(hpn: Hpn) -> None:
    bad = hpn.state / "bad.yaml"
    bad.write_text(
        "drill: bad\nsummary: x\ntopology: tiny\nworkload: {load: 140 %}\n"
        "timeline:\n  healthy: 1 s\n  faults:\n    - {fault: link-down, target: p0.s0.h9.r0.0, at: 1 s, for: 1 s}\n"
        "  settle: 2 s\nexpect:\n  - worst_outge: {below: 50 ms}\n"
    )
    said = hpn.run("drill", "validate", str(bad), code=2)
    assert f"{bad}:4:" in said
    assert f"{bad}:8:" in said
    assert f"{bad}:11:" in said


def test_a_fabric_beyond_the_neighbour_table_is_refused_with_the_way_out(hpn: Hpn) -> None:
    said = hpn.run("up", "segment", code=3)
    assert "sysctl -w net.ipv4.neigh.default.gc_thresh2=" in said
    assert "hpn up --raise-neighbour-limit" in said


def test_a_drill_beyond_the_neighbour_table_is_refused_with_the_way_out(hpn: Hpn) -> None:
    said = hpn.run("drill", "run", "segment-tor-crash", code=3)
    assert "hpn up --raise-neighbour-limit (so too hpn drill run)" in said


def test_help_names_the_exit_codes(hpn: Hpn) -> None:
    assert "4 inconclusive" in hpn.run("--help")


@pytest.mark.parametrize(
    ("redirect", "code", "words"),
    [(">&-", 0, "next: hpn plan tiny"), (">/dev/full", 3, "hpn: No space left on device")],
)
def test_an_output_that_takes_nothing_is_no_traceback(tmp_path: Path, redirect: str, code: int, words: str) -> None:
    command = f"{sys.executable} {ROOT / 'cli.py'} presets {redirect}"
    ended = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False), ended.stderr
    assert ended.stderr.startswith(words)
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", ["presets", "doctor", "plan pod --json", "drill ls", "--help"])
def test_a_reader_that_goes_away_is_no_answer(tmp_path: Path, arguments: str) -> None:
    """0 would be a pass and 1 a fail: what the shell reports of any program killed by SIGPIPE it is."""
    command = f"exec 3>&1; {{ {sys.executable} {ROOT / 'cli.py'} {arguments}; echo $? >&3; }} | true"
    ended = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip() == "141", ended.stderr
    assert ended.stderr == ""


@pytest.mark.parametrize("name", ["[bold]x", "x[/]", "[/red]"])
def test_brackets_in_a_path_are_brackets(tmp_path: Path, name: str) -> None:
    from hpn.results.run.progress import Progress
    from hpn.results.text.live import LiveView

    shown = io.StringIO()
    monkeypatched, sys.stdout = sys.stdout, shown
    try:
        console = terminal()
        with LiveView(console, name) as tell:
            tell(Progress("phase", f"at {name}"))
        console.print(f"run folder: {name}")
    finally:
        sys.stdout = monkeypatched
    assert shown.getvalue() == f"{name}: at {name}\nrun folder: {name}\n"


def test_piped_tables_are_as_wide_as_columns_says_and_else_a_row_is_a_line(
    hpn: Hpn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert 40 < max(map(len, hpn.run("presets").splitlines())) <= 80
    monkeypatch.delenv("COLUMNS")
    lines = hpn.run("presets").rstrip("\n").splitlines()
    assert [line.split()[0] for line in lines[2 : 2 + len(PRESETS)]] == [*PRESETS]


def test_lists_come_as_json(hpn: Hpn) -> None:
    presets, drills = hpn.json("presets"), hpn.json("drill", "ls")
    assert isinstance(presets, list)
    assert isinstance(drills, list)
    assert "tiny" in {each["name"] for each in presets}
    assert "link-down" in {each["name"] for each in drills}


def test_down_that_would_have_to_guess_says_how_to_tell_it(hpn: Hpn) -> None:
    """``down`` takes a name, no --lab; labs that died count too."""
    labs = hpn.state / "labs"
    for name in ("a", "b"):
        (labs / name).mkdir(parents=True)
        (labs / name / "lock").touch()
        (labs / name / "lab.log").write_text("Fatal Python error: Aborted\n")
    labs.chmod(0o700)
    assert "which lab? hpn down NAME, or --all; there are: a, b" in hpn.run("down", code=2)
    assert "lab a is down\nlab b is down" in hpn.run("down", "--all")
    assert list(labs.iterdir()) == []


def ran_of_all(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give ``hpn drill run --all``; return the drills that it would have run."""
    ran: list[str] = []

    def carry_out(batch: Batch, *_rest: object) -> int:
        ran.extend(drill.name for drill in batch.drills)
        return 0

    monkeypatch.setattr(drill_commands, "make", carry_out)
    assert cli.command_line.main(["drill", "run", "--all"], prog_name="hpn", standalone_mode=False) == 0
    return ran


def test_all_leaves_out_drills_whose_client_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Torch, "missing", lambda _client, _site: "client torch: not here; install it")
    ran = ran_of_all(monkeypatch)
    assert "left out: job-torch-link-down: client torch: not here; install it" in capsys.readouterr().err
    assert set(catalogue.names()) - set(ran) >= {"job-torch-link-down", "job-torch-link-down-steered"}
    assert "link-down" in ran


def test_all_leaves_out_labs_that_need_a_kernel_of_ours_and_says_how_to_run_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = ran_of_all(monkeypatch)
    assert "hpn drill run incast-pfc --engine uml-virtual-time" in capsys.readouterr().err
    assert "incast-no-control" in ran
    assert "incast-pfc" not in ran


def test_all_leaves_out_a_lab_that_takes_the_machine_for_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = ran_of_all(monkeypatch)
    told = "left out: segment-tor-crash: a lab of 1,088 NICs is run alone: hpn drill run segment-tor-crash (docs/gro"
    assert told in capsys.readouterr().err
    assert "segment-tor-crash" not in ran
    assert "tor-crash" in ran


_WAITS = """
import signal
from hpn.commands import edge

def wait():
    print("waits", flush=True)
    signal.pause()

edge.run(lambda: None, wait)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_a_hang_up_end_a_command_as_ctrl_c_does(number: signal.Signals) -> None:
    """So that what it has begun is undone, whoever ends it."""
    waits = [sys.executable, "-c", _WAITS]
    with subprocess.Popen(waits, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "interrupted\n")
