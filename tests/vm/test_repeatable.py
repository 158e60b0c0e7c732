"""What runs in virtual time must not find more to read on one machine than on another."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path

import pytest

from hpn.testbed.vm import repeatable


def test_stale_byte_code_of_what_is_loaded_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installer that edits a file behind Python's back had every worker in a guest compile it again."""
    source = tmp_path / "library.py"
    source.write_text("OLD = 1\n")
    loaded = types.ModuleType("library")
    loaded.__file__ = str(source)
    monkeypatch.setitem(sys.modules, "library", loaded)
    repeatable.compile_project()
    cached = Path(importlib.util.cache_from_source(str(source)))
    old = cached.read_bytes()
    source.write_text("NEW = 1234\n")
    os.utime(source, (1, 1))
    repeatable.compile_project()
    assert cached.read_bytes() != old
    assert b"NEW" in cached.read_bytes()
