"""What a UML kernel says of itself, and what is asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import uml_kernel
from hpn.testbed.vm.uml import Uml

ENOUGH = (
    "HOSTFS NULL_CHAN TMPFS PROC_FS SYSFS DEVTMPFS NET_NS PID_NS PACKET VETH IP_ROUTE_MULTIPATH "
    "NET_SCH_TBF NET_SCH_HTB NET_CLS_U32 BONDING"
)


def stand_in(
    tmp_path: Path, options: str, *, release: str = "6.1.7", kind: str = "y", more: str = "", run: str = ":"
) -> Path:
    """A program that says what a kernel says of itself, and does ``run`` when it is to boot."""
    config = "".join(f"CONFIG_{name}={kind}\\n" for name in options.split())
    path = tmp_path / "linux"
    path.write_text(
        f"#!/bin/sh\ncase $1 in --version) echo {release};; --showconfig) printf '{config}';;"
        f" --help) echo 'User Mode Linux v{release} {more}';; *) {run};; esac\n"
    )
    path.chmod(0o755)
    return path


def test_a_kernel_tells_release_options_and_parameters(tmp_path: Path) -> None:
    found = uml_kernel.describe(stand_in(tmp_path, ENOUGH + " UML_TIME_TRAVEL_SUPPORT", more="seccomp=<on/off>"))
    assert found.release == "6.1.7"
    assert found.time_travel
    assert found.seccomp
    assert uml_kernel.modules(found) == ()


def test_every_missing_option_is_named_with_the_way_out(tmp_path: Path) -> None:
    path = stand_in(tmp_path, ENOUGH.replace("VETH ", "").replace("NET_NS ", ""))
    with pytest.raises(MachineError, match=r"lacks CONFIG_NET_NS, CONFIG_VETH: hpn vm build-kernel"):
        Uml(path).check()
    with pytest.raises(MachineError, match="CONFIG_UML_TIME_TRAVEL_SUPPORT"):
        Uml(stand_in(tmp_path, ENOUGH), virtual_time=True).check()


def test_nftables_will_do_instead_of_bonding(tmp_path: Path) -> None:
    nft = ENOUGH.replace("BONDING", "NF_TABLES_NETDEV NFT_FWD_NETDEV NFT_DUP_NETDEV NFT_HASH")
    Uml(stand_in(tmp_path, nft)).check()
    with pytest.raises(MachineError, match="CONFIG_BONDING"):
        Uml(stand_in(tmp_path, nft.replace("NFT_HASH", ""))).check()


def test_a_program_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    for path, why in ((Path("/bin/true"), "no user-mode-linux"), (tmp_path / "absent", "No such file")):
        with pytest.raises(MachineError, match=why):
            Uml(path).check()


def test_without_our_kernel_virtual_time_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path))
    with pytest.raises(MachineError, match="hpn vm build-kernel"):
        Uml(virtual_time=True).check()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="apt install user-mode-linux"):
        Uml().check()


def test_modules_are_loaded_after_what_they_need(tmp_path: Path) -> None:
    home = tmp_path / "modules" / "6.1.7"
    home.mkdir(parents=True)
    (home / "modules.dep").write_text(
        "net/veth.ko:\nnet/bonding.ko: net/ipv6.ko lib/crc.ko\nlib/crc.ko:\nnet/ipv6.ko: lib/crc.ko\nfs/xfs.ko:\n"
    )
    kernel = uml_kernel.describe(stand_in(tmp_path, ENOUGH, kind="m"))
    found = uml_kernel.modules(kernel, tmp_path / "modules")
    assert [(Path(file).name, parameters) for file, parameters in found] == [
        ("veth.ko", ""),
        ("crc.ko", ""),
        ("ipv6.ko", ""),
        ("bonding.ko", "max_bonds=0"),
    ]
    with pytest.raises(MachineError, match="apt install --reinstall user-mode-linux"):
        uml_kernel.modules(kernel, tmp_path)


def test_a_cpu_with_amx_needs_a_newer_kernel(tmp_path: Path) -> None:
    (tmp_path / "amx").write_text("flags : fpu avx512f amx_bf16 amx_tile\n")
    (tmp_path / "plain").write_text("flags : fpu avx512f\n")
    old, new = (
        uml_kernel.describe(stand_in(_folder(tmp_path / release), "VETH", release=release))
        for release in ("6.1.7", "6.13.0")
    )
    assert uml_kernel.cpu_state_too_large(old, tmp_path / "amx")
    assert not uml_kernel.cpu_state_too_large(old, tmp_path / "plain")
    assert not uml_kernel.cpu_state_too_large(new, tmp_path / "amx")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
