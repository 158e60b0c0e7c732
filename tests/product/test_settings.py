"""Options from the environment and from files: which goes first, what is refused, and whom nobody believes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from hpn import cli
from hpn.commands import settings
from hpn.testbed.errors import InputError
from hpn.testbed.variables import VARIABLES
from tests.docs.pages import PAGES, Language, blocks
from tests.product.hpn import ROOT


class _Place:
    """A working folder and a user's own folder of settings."""

    def __init__(self, here: Path, own: Path) -> None:
        self.here, self.own = here / "hpn.toml", own / "hpn" / "config.toml"

    def run(self, *arguments: str) -> str:
        """What a command prints, on stderr too. Its error as it is raised."""
        return self._result(*arguments).output

    def _result(self, *arguments: str) -> Result:
        result = CliRunner().invoke(cli.command_line, arguments, prog_name="hpn")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def fault(self, *arguments: str) -> str:
        """Which fault ``hpn drill new`` writes; its template is said, so that it asks nothing."""
        self.run("drill", "new", "x", "--template", "streams", "--force", *arguments)
        (line,) = (line for line in Path("x.yaml").read_text().splitlines() if " fault: " in line)
        return line.partition(" fault: ")[2].partition(",")[0]

    def config(self) -> dict[str, Any]:
        """What ``hpn config`` says."""
        found = json.loads(self._result("config", "--json").stdout)
        assert isinstance(found, dict)
        return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Place:
    here, own = tmp_path / "here", tmp_path / "own"
    here.mkdir()
    (own / "hpn").mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own))
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))
    return _Place(here, own)


def test_the_command_line_goes_before_the_environment_that_before_files_and_those_before_defaults(
    place: _Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.fault() == "link-down"
    place.own.write_text('[drill.new]\nfault = "nic-down"\n')
    assert place.fault() == "nic-down"
    place.here.write_text('[drill.new]\nfault = "host-down"\n')
    assert place.fault() == "host-down"
    monkeypatch.setenv("HPN_DRILL_NEW_FAULT", "tor-crash")
    assert place.fault() == "tor-crash"
    assert place.fault("--fault", "agg-crash") == "agg-crash"


def test_files_are_read_option_by_option_and_config_says_which_came_from_where(
    place: _Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.own.write_text('[drill.run]\nengine = "uml"\nrepeat = 3\n[drill.new]\nforce = true\n')
    place.here.write_text('[drill.run]\nrepeat = 5\nkeep-records = true\n[up]\nname = "mine"\n')
    monkeypatch.setenv("HPN_UP_QUIET", "1")
    monkeypatch.setenv("HPN_DRIL_RUN_ENGINE", "uml")
    found = place.config()
    assert [each["state"] for each in found["files"]] == ["read", "read"]
    rows = {(row["command"], row["option"]): (row["value"], row["source"]) for row in found["options"]}
    assert rows == {
        ("hpn drill run", "--engine"): ("uml", str(place.own)),
        ("hpn drill run", "--repeat"): ("5", "hpn.toml"),
        ("hpn drill run", "--keep-records"): ("true", "hpn.toml"),
        ("hpn drill new", "--force"): ("true", str(place.own)),
        ("hpn up", "--name"): ("mine", "hpn.toml"),
        ("hpn up", "--quiet"): ("1", "HPN_UP_QUIET"),
    }
    assert found["unknown"] == ["HPN_DRIL_RUN_ENGINE"]
    shown = place.run("config")
    assert "HPN_UP_QUIET" in shown
    assert "nothing reads HPN_DRIL_RUN_ENGINE" in shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[drill.run]\nengin = "uml"\n', "hpn.toml: [drill.run] engin is not an option; did you mean engine?"),
        ('[drill.rnu]\nengine = "uml"\n', "hpn.toml: [drill] rnu is not an option; did you mean run?"),
        ("[dril]\nx = 1\n", "hpn.toml: dril is not a command or an option of hpn; did you mean drill?"),
        ("drill = 1\n", "hpn.toml: drill is no table; write [drill]"),
        ('[drill.run]\nrepeat = "many"\n', "hpn.toml: [drill.run] repeat: 'many' is not a valid integer"),
        ("[drill.run]\nrepeat = 0\n", "hpn.toml: [drill.run] repeat: 0 is not in the range"),
        ("[drill.run]\nrepeat = [1, 2]\n", "hpn.toml: [drill.run] repeat is no text or number"),
        ("[drill.run]\nrepeat = true\n", "hpn.toml: [drill.run] repeat is no text or number"),
        ('[drill.run]\nengine = "umml"\n', "hpn.toml: [drill.run] engine: 'umml' is not one of"),
        ('[drill.run]\nkeep-records = "yes"\n', "hpn.toml: [drill.run] keep-records is 'yes'; write true or false"),
        ("[drill.run]\nhelp = true\n", "help is not an option"),
        ("[drill.run\n", "hpn.toml:1: "),
        ('[up]\n\nname = "a\n', "hpn.toml:3: "),
        ("[up]\nname = 1\nname = 2\n", "hpn.toml:3: "),
        ('plugin = ["."]\n', "plugin may only stand in your own"),
        ("[drill.new]\nforce = true\n", "[drill.new] force may only stand in your own"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line_with_the_key(place: _Place, text: str, words: str) -> None:
    place.here.write_text(text)
    with pytest.raises(InputError) as caught:
        place.run("drill", "ls")
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert "Usage: hpn" in place.run("--help"), "help helps all the same"


def test_the_files_that_pages_show_are_right(place: _Place) -> None:
    shown = [block for page in PAGES for block in blocks(page) if block.language is Language.TOML]
    for block in shown:
        place.own.write_text(block.text)
        assert place.config()["options"], block.place
    assert shown


def test_a_text_that_is_no_text_is_told(place: _Place) -> None:
    place.here.write_bytes(b"\xff\xfe[up]")
    with pytest.raises(InputError, match="no text in UTF-8"):
        place.run("presets")
    place.here.write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"hpn\.toml:1: "):
        place.run("presets")


def test_a_file_of_somebody_else_or_that_anybody_may_write_is_ignored_with_a_word(place: _Place) -> None:
    place.here.write_text("[presets]\nnonsense = 1\n")
    place.here.chmod(0o666)
    assert "hpn.toml is ignored: anybody may write it" in place.run("presets")
    assert [each["state"] for each in place.config()["files"]] == [
        "ignored: anybody may write it; chmod o-w it",
        "not there",
    ]
    place.here.chmod(0o644)
    with pytest.raises(InputError):
        place.run("presets")
    if os.geteuid() == 0:
        os.chown(place.here, 12345, -1)
        assert "neither yours nor root's" in place.run("presets")


def test_what_is_no_file_is_ignored_and_nobody_waits_for_it(place: _Place) -> None:
    os.mkfifo(place.here)
    assert "no regular file" in place.run("presets")
    place.here.unlink()
    place.here.mkdir()
    assert "hpn.toml is ignored" in place.run("presets")
    place.here.rmdir()
    place.here.write_text("#" * (300 << 10))
    assert "larger than 256 KiB" in place.run("presets")


def test_a_plug_in_of_the_users_own_file_is_loaded(place: _Place, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[object] = []
    monkeypatch.setattr("hpn.testbed.plugins.use", lambda folders: used.extend(folders))
    place.own.write_text('plugin = ["."]\n')
    place.run("presets")
    assert used == [Path()]
    assert ("--plugin", ".") in {(row["option"], row["value"]) for row in place.config()["options"]}


def test_old_names_of_commands_and_options_count_too(place: _Place) -> None:
    place.here.write_text('[drill.run]\nengine = "uml"\nvirtual-time = true\n[results.list]\nruns = "elsewhere"\n')
    assert "--virtual-time" in {row["option"] for row in place.config()["options"]}
    for name in ("list", "ls"):
        with pytest.raises(InputError, match="elsewhere is no folder"):
            place.run("results", name)


def _leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(command)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, name)  # type: ignore[attr-defined]
        yield from _leaves(below, (*path, name))
    yield path, command


def test_every_option_has_a_variable_of_its_own_and_none_that_means_something_else() -> None:
    names = []
    for path, command in _leaves(cli.command_line):
        for option in settings.options_of(command).values():
            if path:
                assert isinstance(option.envvar, str), (path, option.name)
                assert option.envvar.startswith(f"HPN_{path[0].upper().replace('-', '_')}_")
                names.append(option.envvar)
    assert len(names) == len(set(names))
    assert len(names) > 50
    assert set(names) & set(VARIABLES) == set()
    assert {"HPN_DRILL_RUN_ENGINE", "HPN_DRILL_RUN_ALL", "HPN_VM_BUILD_KERNEL_LATER_SUITES"} <= set(names)


def test_the_command_that_repeats_a_run_has_what_came_from_elsewhere(
    place: _Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, ...]] = []

    @click.command()
    @click.option("--engine")
    @click.option("--all", "everything", is_flag=True)
    @click.option("--repeat", type=int, default=1)
    @click.option("--out", type=click.Path(path_type=Path))
    def run(**_values: object) -> None:
        seen.append(settings.as_run())

    settings.name_variables(run, ("x",))
    monkeypatch.setattr(sys, "argv", ["hpn", "x", "--repeat", "2"])
    monkeypatch.setenv("HPN_X_ENGINE", "uml")
    monkeypatch.setenv("HPN_X_REPEAT", "9")
    run.main(["--repeat", "2"], default_map={"everything": True, "out": "o"}, standalone_mode=False)
    assert seen == [("x", "--repeat", "2", "--engine", "uml", "--all", "--out", "o")]


def _completed(*words: str) -> list[str]:
    *before, last = words
    found = ShellComplete(cli.command_line, {}, "hpn", "_HPN_COMPLETE").get_completions(before, last)
    return [item.value if item.type == "plain" else f"a {item.type}" for item in found]


def test_a_shell_completes_commands_options_drills_presets_engines_and_run_folders(place: _Place) -> None:
    assert {"drill", "down", "doctor"} <= set(_completed("d"))
    assert _completed("drill", "sch") == ["schema"]
    assert "--keep-records" in _completed("drill", "run", "--k")
    assert {"link-down", "link-delay"} <= set(_completed("drill", "run", "link-d"))
    assert {"tor-crash", "tor-drain"} <= set(_completed("drill", "show", "tor-"))
    assert _completed("drill", "validate", "./x") == ["a file"]
    assert {"tiny", "tiny-pods"} <= set(_completed("up", "ti"))
    assert {"medium"} == set(_completed("graph", "med"))
    assert _completed("drill", "run", "--engine", "um") == ["uml", "uml-virtual-time"]
    assert _completed("report", "runs/") == ["a dir"]
    place.here.write_text("nonsense")
    assert "drill" in _completed("dr"), "no file of settings stands in the way of completion"


def test_completing_a_command_imports_none_and_bash_takes_the_script(tmp_path: Path) -> None:
    asked = (
        "import sys\nfrom hpn import cli\n"
        "from click.shell_completion import ShellComplete\n"
        "found = ShellComplete(cli.command_line, {}, 'hpn', '_HPN_COMPLETE').get_completions([], 'd')\n"
        "print(len(found), *{name.partition('.')[0] for name in sys.modules} & {'scenarios', 'pydantic', 'rich'})"
    )
    said = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["3"]
    script = f'eval "$(_HPN_COMPLETE=bash_source {sys.executable} {ROOT / "cli.py"})" && complete -p hpn'
    ended = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "_hpn_completion hpn" in ended.stdout
