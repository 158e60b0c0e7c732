"""Whether KVM works is found out once and remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import kvm


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))


def _device(tmp_path: Path) -> Path:
    device = tmp_path / "kvm"
    device.touch()
    return device


def test_without_the_device_nothing_is_tried(tmp_path: Path) -> None:
    assert kvm.problem("6.1", lambda: pytest.fail("tried"), tmp_path / "absent") == "no /dev/kvm"


def test_a_guest_that_does_not_boot_is_tried_once_for_each_kernel(tmp_path: Path) -> None:
    tried: list[str] = []

    def boot() -> None:
        tried.append("boot")
        raise MachineError("hangs")

    answers = [kvm.problem(release, boot, _device(tmp_path)) for release in ("6.1", "6.1", "6.12")]
    assert set(answers) == {"a guest was not up in time with this /dev/kvm"}
    assert len(tried) == 2


def test_one_that_boots_is_remembered_too_and_a_damaged_memory_is_not_trusted(tmp_path: Path) -> None:
    tried: list[str] = []
    device = _device(tmp_path)
    for _ in range(2):
        assert kvm.problem("6.1", lambda: tried.append("boot"), device) is None
    assert len(tried) == 1
    (tmp_path / "cache" / "kvm.json").write_text("{")
    assert kvm.problem("6.1", lambda: tried.append("boot"), device) is None
    assert len(tried) == 2
