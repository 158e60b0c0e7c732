"""A drill by hpn as its wheel installs it, where no checkout is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.product.hpn import skip_without_virtual_time
from tests.product.wheel import install

pytest.importorskip("setuptools", "77", reason="an older setuptools cannot build this project")


@pytest.mark.guest
def test_an_installed_hpn_drills_in_virtual_time(tmp_path: Path) -> None:
    skip_without_virtual_time()
    installed = install(tmp_path)
    ran = installed.hpn("drill", "run", "link-down", "--engine", "uml", "--virtual-time", "--out", str(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "PASS  link-down" in ran.stdout
