"""``hpn doctor --engines``: what is said to boot, boots."""

from __future__ import annotations

import pytest

from hpn.testbed.vm.doctor import examine

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]


def test_asked_to_boot_every_engine_that_can_runs_a_guest() -> None:
    can = [capability for capability in examine() if capability.present]
    if not can:
        pytest.skip("; ".join(capability.provide for capability in examine()))
    booted = {capability.name: capability for capability in examine(boot=True)}
    for capability in can:
        assert booted[capability.name].present, booted[capability.name].provide
        assert "first command after" in booted[capability.name].detail
    if "engine qemu" in {capability.name for capability in can}:
        assert booted["engine qemu"].detail.endswith(("kvm", ")")), "QEMU says how it accelerates"
