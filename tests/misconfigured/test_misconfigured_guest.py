"""Two mistakes in virtual time that no line of a configuration shows: routes that are short, a route that stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.kernel.process import programs
from tests.misconfigured.edits import access
from tests.misconfigured.judging import found
from tests.misconfigured.planted import MISCONFIGURATIONS
from tests.product.hpn import skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]


@pytest.mark.parametrize("name", ["maximum-paths-1", "static-route-stays"])
def test_an_audit_names_what_costs_something(name: str, tmp_path: Path) -> None:
    skip_without_virtual_time()
    if programs.find("vtysh") is None:
        pytest.skip("FRR's vtysh is not installed: apt install frr")
    entry = MISCONFIGURATIONS[name]
    planted = entry.planted("guest")
    elements = planted.tried or (access(planted.repository.net.hosts[0]),)
    told = found(tmp_path, planted.repository, ("link",), elements)
    where, line = told.naming(planted.element)
    assert where is entry.named, (line, told.lines)
    assert told.cost
