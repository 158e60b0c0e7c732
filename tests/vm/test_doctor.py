"""What the doctor says of guests: the engines' own reasons where they cannot boot, their kernels where they can."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import kernel_cache, qemu, uml_kernel
from hpn.testbed.vm.doctor import examine
from hpn.testbed.vm.qemu import Qemu
from hpn.testbed.vm.qemu_command import Kernel
from hpn.testbed.vm.uml_kernel import UmlKernel


def _refuse(*_arguments: object) -> None:
    raise MachineError("engine qemu cannot run here: virtme-ng: pip install virtme-ng")


def test_an_engine_that_cannot_boot_says_why_and_what_provides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Qemu, "check", _refuse)
    [found] = [capability for capability in examine() if capability.name == "engine qemu"]
    assert not found.present
    assert not found.needed
    assert found.provide == "virtme-ng: pip install virtme-ng"
    assert "uml" in found.instead


def test_without_a_kernel_of_ours_virtual_time_names_the_command_that_builds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path))
    assert kernel_cache.newest() is None
    [found] = [capability for capability in examine() if capability.name == "engine uml-virtual-time"]
    assert not found.present
    if os.uname().machine == "x86_64":
        assert "hpn vm build-kernel" in found.provide
    assert "real time" in found.instead


def test_qemu_names_its_kernel_and_leaves_a_usable_kvm_to_the_first_boot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Qemu, "check", lambda _self: None)
    monkeypatch.setattr(Qemu, "kernel", lambda _self: Kernel(Path("/boot/vmlinuz-9.9"), "9.9"))
    monkeypatch.setattr(Qemu, "accelerator", lambda _self: "tcg (no /dev/kvm)")
    device = tmp_path / "kvm"
    monkeypatch.setattr(qemu, "_KVM", device)
    assert examine()[0].detail == "Linux 9.9, tcg (no /dev/kvm)"
    device.touch()
    assert examine()[0].detail.startswith("Linux 9.9, kvm or tcg: ")


def test_user_mode_linux_names_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = UmlKernel(Path("/some/linux"), "7.7.7", {"VETH": "y"}, "")
    monkeypatch.setattr(uml_kernel, "find", lambda *_wanted, **_how: kernel)
    assert [c.detail for c in examine()[1:]] == ["Linux 7.7.7, /some/linux"] * 2
