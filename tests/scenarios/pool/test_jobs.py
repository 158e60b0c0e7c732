"""Each command that makes several runs hands its --jobs and --scheduler on to the pool."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from hpn import cli

SUITE = "suite: nightly\nparallel: 5\nruns: [{drills: [link-down]}]\n"
COMMANDS = {
    "drill": ("drill", "run", "link-down"),
    "ci": ("ci", "run", "suite.yaml"),
    "paper": ("reproduce", "--engine", "host"),
    "campaign": ("campaign", "run", "tiny"),
}


class Asked(Exception):
    pass


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("options", "asked"),
    [(("--jobs", "3"), (3, None)), (("--scheduler", "tcp://10.0.0.1:1"), (None, "tcp://10.0.0.1:1"))],
)
def test_the_pool_is_the_one_that_was_asked_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    options: tuple[str, ...],
    asked: tuple[int | None, str | None],
) -> None:
    def stop(_below: Path, *rest: object) -> NoReturn:
        raise Asked(*rest)

    monkeypatch.chdir(tmp_path)
    Path("suite.yaml").write_text(SUITE)
    monkeypatch.setattr(f"hpn.commands.{name}.pool_for", stop)
    with pytest.raises(Asked) as found:
        cli.command_line.main([*COMMANDS[name], *options, "--out", "out"], prog_name="hpn", standalone_mode=False)
    assert found.value.args[:2] == asked
