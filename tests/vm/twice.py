"""A drill of the library in virtual time, made twice with equal bytes."""

from __future__ import annotations

from pathlib import Path

from hpn.results.run import folder
from hpn.results.run.folder import RunFolder
from tests.product.hpn import Hpn, skip_without_virtual_time

_MADE_EACH_TIME = {"manifest.json", "report.html"}


def twice(tmp_path: Path, drill: str) -> RunFolder:
    """The drill's run, made twice with equal bytes."""
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    for out in ("first", "second"):
        hpn.run("drill", "run", drill, "--engine", "uml-virtual-time", "--out", out)
    first, second = (tmp_path / out / drill for out in ("first", "second"))
    names = {path.name for run in (first, second) for path in run.iterdir() if path.is_file()}
    for name in sorted(names - _MADE_EACH_TIME):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    return folder.load(first)
