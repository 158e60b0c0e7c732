"""What a shell completes, asked as bash, zsh and fish ask."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from hpn import cli
from hpn.commands import COMMANDS, completion_cache
from hpn.commands.outline import command_of, outline
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.lab.service.labfolder import LabFolder
from tests.product.hpn import ROOT


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, with a cache and labs of its own."""
    (folder := tmp_path / "here").mkdir()
    (tmp_path / "labs").mkdir(mode=0o700)
    monkeypatch.chdir(folder)
    for name, place in (("HPN_CACHE_DIR", "cache"), ("HPN_STATE_DIR", "labs"), ("XDG_CONFIG_HOME", "config")):
        monkeypatch.setenv(name, str(tmp_path / place))
    return folder


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[Path]:
    """A lab that is up, one whose state is damaged, one that has none, and a dead one."""
    held = []
    for name in ("mine", "damaged", "bare", "dead"):
        (folder := tmp_path / "labs" / name).mkdir()
        held.append((folder / "lock").open("w"))
        if name != "dead":
            fcntl.flock(held[-1], fcntl.LOCK_EX)
    (tmp_path / "labs" / "mine" / "fabric.json").write_text(PRESETS["tiny"].spec.model_dump_json())
    (tmp_path / "labs" / "damaged" / "fabric.json").write_bytes(b"\xff{")
    yield tmp_path / "labs"
    for file in held:
        file.close()


def _completed(line: str, shell: type[ShellComplete] = BashComplete) -> list[str]:
    *before, last = line.split(" ")
    found = shell(cli.command_line, {}, "hpn", "_HPN_COMPLETE").get_completions(before, last)
    return [item.value if item.type == "plain" else f"a {item.type}" for item in found]


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        (BashComplete, "plain,tor-crash"),
        (ZshComplete, "plain\ntor-crash\n_"),
        (FishComplete, "plain,tor-crash"),
    ],
)
def test_each_shell_is_told_the_names_of_faults(
    shell: type[ShellComplete], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", "hpn drill new --fault tor-c")
    monkeypatch.setenv("COMP_CWORD", "tor-c" if shell is FishComplete else "4")
    told = shell(cli.command_line, {}, "hpn", "_HPN_COMPLETE").complete()
    assert said.split() == told.split()[: len(said.split())]
    assert "tor-control-hang" in told


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("drill new --template st", ["streams"]),
        ("drill new --fault plane-down --target pl", ["plane0", "plane1"]),
        ("drill new --fault tor-crash --topology tiny --target p0.s0.t0.", ["p0.s0.t0.0", "p0.s0.t0.1"]),
        ("drill new --fault no-such --target p", []),
        ("drill new --fault tor-crash --topology nowhere --target p", []),
        ("drill run link-down --topology tiny-fa", ["tiny-fat-tree"]),
        ("drill run tor-d", ["tor-dataplane-death", "tor-drain"]),
        ("topology new --preset medi", ["medium"]),
        ("month stack", ["stacked-dual-tor"]),
        ("compare a b --across eng", ["engine"]),
        ("drill run --engine um", ["uml", "uml-virtual-time"]),
        ("inspect bro", ["broken"]),
        ("ci run x.yaml --topology medi", ["medium"]),
    ],
)
def test_it_knows_what_hpn_knows(line: str, names: list[str]) -> None:
    assert sorted(_completed(line)) == names
    assert sorted(_completed(line)) == names, "and the same of what it has kept"


@pytest.mark.usefixtures("labs")
@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("down ", ["bare", "damaged", "mine"]),
        ("watch --lab m", ["mine"]),
        ("exec p0.s0.t", ["p0.s0.t0.0", "p0.s0.t0.1", "p0.s0.t1.0", "p0.s0.t1.1"]),
        ("shell c", []),
        ("trace p0.s0.h0", ["p0.s0.h0.r0", "p0.s0.h0.r1"]),
        ("trace p0.s0.h0.r0 p0.s1.h1.r1", ["p0.s1.h1.r1"]),
        ("break p0.s0.h0.r0", ["p0.s0.h0.r0", "p0.s0.h0.r0.0", "p0.s0.h0.r0.1"]),
        ("capture p0.s0.h0.r0 p0.s0.h1.r0.", ["p0.s0.h1.r0.0", "p0.s0.h1.r0.1"]),
        ("inspect --node p0.s0.h0", ["p0.s0.h0"]),
        ("exec --lab damaged p", []),
        ("exec --lab dead p", []),
        ("exec --lab ../x p", []),
    ],
)
def test_it_knows_running_labs_and_their_parts(line: str, names: list[str]) -> None:
    assert sorted(_completed(line)) == names


def test_a_lab_that_is_looked_at_stays_as_it_is(labs: Path) -> None:
    _completed("down ")
    assert (labs / "dead" / "lock").exists()
    assert LabFolder(labs / "mine").is_held()


def test_labs_of_a_folder_that_others_may_enter_are_not_offered(labs: Path) -> None:
    labs.chmod(0o755)
    assert _completed("down ") == []


def _run(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "manifest.json").touch()


def test_it_knows_run_folders_and_offers_no_name_that_a_shell_would_take_for_something_else(here: Path) -> None:
    for name in ("runs/1/link-down", "runs/2/tor-crash", "other/x"):
        _run(here / name)
    (here / "runs" / "3" / "unmade").mkdir(parents=True)
    for name in ("a b", "$(x)", "-x", "new\nline", "é;rm", os.fsdecode(b"\xff")):
        _run(here / "runs" / "1" / name)
        _run(here / name)
    (here / "runs" / "2" / "loop").symlink_to(here / "runs")
    assert _completed("report ") == ["runs/2/tor-crash", "runs/1/link-down", "runs/1/-x", "other/x"]
    assert _completed("report runs/1/l") == ["runs/1/link-down"]
    assert _completed("cite other/x oth") == ["other/x"]
    assert _completed("inspect run r") == ["runs/2/tor-crash", "runs/1/link-down", "runs/1/-x"]
    assert _completed("compare runs/2") == ["runs/2", "runs/2/tor-crash"]
    assert _completed("results export oth") == ["other", "other/x"]
    assert _completed("report nowhere/") == ["a dir"]
    assert _completed(f"report {here}/runs/2/") == [f"{here}/runs/2/tor-crash"]


def test_the_outline_of_a_command_completes_as_the_command(labs: Path) -> None:
    assert labs
    for name in COMMANDS:
        live = cli.command_line.get_command(click.Context(cli.command_line), name)
        assert live is not None
        told = command_of(name, json.loads(json.dumps(outline(live))))
        assert outline(told) == outline(live), name


def test_what_is_kept_is_used_and_made_anew_when_it_is_damaged_or_hpn_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _completed("drill new --fault tor-c")[0] == "tor-crash"
    (faults,) = (tmp_path / "cache" / "completion").glob("*-failover-faults-faults.json")
    (command,) = (tmp_path / "cache" / "completion").glob("*-command-drill.json")
    faults.write_text('["tor-cold"]')
    assert _completed("drill new --fault tor-c") == ["tor-cold"]
    for damage in ("7", "{", '{"a": 1}', "[7, null]", "\0"):
        faults.write_text(damage)
        command.write_text(damage)
        assert _completed("drill new --fault tor-c") in ([], ["tor-crash", "tor-control-hang"]), damage
    monkeypatch.setattr(completion_cache, "_version", lambda: "another")
    assert _completed("drill new --fault tor-c")[0] == "tor-crash"


def test_it_works_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    assert _completed("drill new --fault tor-c")[0] == "tor-crash"


@pytest.mark.usefixtures("labs")
@pytest.mark.parametrize("line", ["drill run link-d", "report ru", "exec --lab mine p0", "drill new --fault tor"])
def test_a_second_key_press_imports_nothing_heavy(line: str) -> None:
    """Without those it takes a tenth of a second of CPU time more than Python itself."""
    _completed(line)
    words = line.split()
    asked = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from hpn import cli\n"
        "from click.shell_completion import ShellComplete\n"
        f"ShellComplete(cli.command_line, {{}}, 'hpn', '').get_completions({words[:-1]}, {words[-1]!r})\n"
        "heavy = {'pydantic', 'rich', 'numpy', 'yaml', 'hpn.scenarios', 'hpn.failover', 'hpn.results'}\n"
        "print(*heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
