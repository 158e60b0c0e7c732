"""Programs are found in PATH first, and in sbin even when PATH does not name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.kernel.process import programs


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "a-tool"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setattr(programs, "_SBIN", (str(tmp_path),))
    return path


def test_sbin_is_searched_although_path_does_not_name_it(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert programs.find("a-tool") == str(tool)
    assert programs.find("no-such-tool") is None


def test_path_comes_first(tool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "a-tool").write_bytes(tool.read_bytes())
    (mine / "a-tool").chmod(0o755)
    monkeypatch.setenv("PATH", str(mine))
    assert programs.find("a-tool") == str(mine / "a-tool")
