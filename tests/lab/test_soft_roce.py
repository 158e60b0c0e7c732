"""``soft_roce`` of a topology: off unless asked for, refused before anything is wired where the kernel cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.kernel.softroce.soft_roce import problem
from hpn.testbed.lab import soft_roce
from tests.lab.running import tiny


def test_a_topology_asks_for_it_by_a_key(tmp_path: Path) -> None:
    file = tmp_path / "roce.yaml"
    file.write_text("preset: tiny\nsoft_roce: yes\n")
    assert load_topology(str(file)).soft_roce
    assert not tiny().soft_roce


def test_every_nic_has_a_name_of_its_own_that_the_kernel_takes() -> None:
    names = [nic.rdma for nic in build(tiny(soft_roce=True)).nics]
    assert len(set(names)) == len(names) == 8
    assert all(len(name) < 64 and "%" not in name for name in names)


def test_only_who_asks_for_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soft_roce, "problem", lambda load: f"no RDMA here, load={load}")
    soft_roce.check(tiny())
    with pytest.raises(MachineError, match="no RDMA here, load=True"):
        soft_roce.check(tiny(soft_roce=True))


@pytest.mark.kernel
def test_a_kernel_whose_driver_listens_in_the_first_namespace_only_is_found_out_by_trying() -> None:
    """Where the driver is loaded already, as in QEMU (``tests/vm/test_qemu.py``); here nobody loads it."""
    said = problem(load=False)
    if said is None:
        pytest.skip("this kernel's Soft-RoCE serves labs")
    loaded = Path("/sys/module/rdma_rxe").is_dir()
    assert ("listens in the machine's first network namespace only" in said) == loaded, said
