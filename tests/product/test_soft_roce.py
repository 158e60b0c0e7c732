"""A drill whose NICs need RDMA devices, on a kernel whose Soft-RoCE is of no use to a lab: one line, exit code 3."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn import cli
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.process import programs
from tests.kernel.test_soft_roce import Kernel
from tests.product.hpn import skip_without_sandbox

DRILL = """\
drill: roce
summary: a program beside RDMA devices
topology: {preset: tiny, soft_roce: yes}
workload: {client: {run: command, command: [sleep, "60"]}}
timeline: {healthy: 2 s}
expect:
  - job_survives: yes
"""


def test_a_kernel_that_listens_in_the_first_namespace_only_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As Debian's 6.1 in QEMU does; what it says there is what is planted here."""
    skip_without_sandbox()
    (tmp_path / "roce.yaml").write_text(DRILL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPN_STATE_DIR", str(tmp_path / "labs"))
    find, create = programs.find, ns.create
    Kernel(monkeypatch, listens=False)
    monkeypatch.setattr(programs, "find", find)  # all but RDMA is as it is here
    monkeypatch.setattr(ns, "create", create)
    monkeypatch.setattr("sys.argv", ["hpn", "drill", "run", "roce.yaml", "--out", "out"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 3
    (said,) = capfd.readouterr().err.splitlines()
    assert said.startswith("hpn: roce: ")
    assert "listens in the machine's first network namespace only" in said
    assert "--engine uml-virtual-time" in said
    assert not list((tmp_path / "labs").glob("*"))
    assert not list((tmp_path / "out").glob("*/verdict.json"))
