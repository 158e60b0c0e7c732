"""What goes into a QEMU guest: the initramfs on top of virtme-ng's, the script, the command line, the checks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import qemu_initrd
from hpn.testbed.vm.qemu_command import Kernel, adapt, kernel_at, missing_modules, missing_tools, newest_kernel

RELEASE = "6.12.9-amd64"
ALL = (
    "virtio_pci virtio_console overlay bonding veth sch_tbf "
    "sch_htb cls_u32 sch_netem 9p 9pnet_virtio nf_tables nft_dup_netdev"
)


def _machine(folder: Path, modules: str) -> Kernel:
    """A kernel installed below ``folder``: /boot and /lib/modules."""
    (folder / "boot").mkdir()
    image = folder / "boot" / f"vmlinuz-{RELEASE}"
    image.write_bytes(b"")
    place = folder / "modules" / RELEASE
    place.mkdir(parents=True)
    (place / "modules.dep").write_text("".join(f"kernel/{m.replace('_', '-')}.ko.xz: other\n" for m in modules.split()))
    (place / "modules.builtin").write_text("kernel/net/nft_fwd_netdev.ko\n")
    return Kernel(image, RELEASE)


@pytest.mark.skipif(shutil.which("busybox") is None, reason="needs busybox to judge the archive")
def test_busybox_unpacks_the_archive_with_content_and_mode(tmp_path: Path) -> None:
    archive = qemu_initrd.cpio("init", b"#!/bin/sh\necho hello\n", 0o755)
    assert len(archive) % 4 == 0
    subprocess.run(["busybox", "cpio", "-i"], input=archive, cwd=tmp_path, check=True, capture_output=True)
    assert subprocess.run([tmp_path / "init"], capture_output=True, text=True, check=True).stdout == "hello\n"


def test_the_init_is_a_shell_script_that_mounts_what_may_be_written_in_order(tmp_path: Path) -> None:
    text = qemu_initrd.init([Path("/a b"), Path("/c")], ["bonding", "veth"], Path("/c/command.sh"))
    (tmp_path / "init").write_bytes(text)
    shell = "busybox" if shutil.which("busybox") else "sh"
    judge = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]
    subprocess.run([*judge, tmp_path / "init"], check=True)
    assert b"virtme.initmount0 '/newroot/a b'\n" in text
    assert b"virtme.initmount1 /newroot/c\n" in text
    assert b"echo 65536 > /newroot/proc/sys/net/ipv4/neigh/default/gc_thresh2\n" in text
    assert b"modprobe -a bonding veth'" in text


def test_the_command_keeps_every_odd_character(tmp_path: Path) -> None:
    odd = ["printf", "%s|", "a b", "$HOME", "it's", '"', "", "*"]
    text = qemu_initrd.script(odd, tmp_path, {"PATH": "/usr/bin:/bin", "X": "1 '2'"}, tmp_path / "exit")
    line = next(line for line in text.splitlines() if line.startswith("cd "))
    assert (
        subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout == "a b|$HOME|it's|\"||*|"
    )


def test_virtme_s_own_init_and_its_settings_are_left_out_of_the_kernel_s_command_line() -> None:
    words = ["qemu", "-chardev", "file,id=ret,path=/tmp/virtme_ret1", "-append"]
    given = [
        *words,
        "console=ttyS0 virtme_chdir=x virtme.exec=`ZQ==` panic=-1 loglevel=1 init=/virtme-init",
        "-m",
        "2G",
    ]
    made = adapt(given)
    assert made[2] == "file,id=ret,path=/dev/null"
    kernel = made[made.index("-append") + 1].split()
    assert {"console=ttyS0", "panic=-1"} <= set(kernel)
    assert not [word for word in kernel if word.startswith(("init=", "virtme", "loglevel"))]
    assert made[-2:] == ["-m", "2G"]


def test_the_newest_kernel_that_has_modules_is_taken(tmp_path: Path) -> None:
    for release in ("6.9.0-1", "6.12.1-1", "6.12.10-1", "7.0.0-1"):
        (tmp_path / f"vmlinuz-{release}").touch()
    for release in ("6.9.0-1", "6.12.1-1", "6.12.10-1"):
        (tmp_path / "modules" / release).mkdir(parents=True)
    found = newest_kernel(tmp_path, tmp_path / "modules")
    assert found is not None
    assert found.release == "6.12.10-1"
    assert newest_kernel(tmp_path / "modules", tmp_path) is None


def test_a_kernel_without_a_needed_option_is_told_which(tmp_path: Path) -> None:
    kernel = _machine(tmp_path, ALL.replace("bonding ", ""))
    assert missing_modules(kernel, tmp_path / "modules") == ["bonding"]
    assert any("has no bonding" in line for line in missing_tools(kernel, tmp_path / "modules"))


def test_a_machine_without_a_kernel_is_told_the_package() -> None:
    assert any("apt install linux-image" in line for line in missing_tools(None))


def test_a_foreign_machine_is_sent_to_the_host_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert list(missing_tools(None)) == ["no QEMU engine for riscv64 machines: use --engine host"]


def test_missing_programs_are_all_named_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda *_words, **_options: None)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    told = " ".join(missing_tools(None))
    for package in ("qemu-system-x86", "virtme-ng", "busybox-static", "kmod"):
        assert package in told


def test_a_file_that_is_no_installed_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="vmlinuz-RELEASE"):
        kernel_at(tmp_path / "bzImage")
