"""What is said of kernels whose Soft-RoCE is of no use to a lab: each way that one can refuse, planted."""

from __future__ import annotations

import errno
import os

import pytest

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import programs
from hpn.testbed.kernel.softroce import soft_roce

HERE = NetNs("here", -1)


class Kernel:
    """RDMA as a kernel would have it: ``refuses`` an errno at the socket (0) or at the device (1)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuses: int = 0, at: int = 0, listens: bool = True) -> None:
        self.refuses, self.at = refuses, at
        self.asked: list[str] = []
        monkeypatch.setattr(soft_roce, "Rdma", lambda _ns: self.opened())
        monkeypatch.setattr(soft_roce, "_interface", lambda _ns: None)
        monkeypatch.setattr(soft_roce, "_taken", lambda _ns: listens)
        monkeypatch.setattr(ns, "create", lambda name: NetNs(name, os.open(os.devnull, os.O_RDONLY)))
        monkeypatch.setattr(programs, "find", self.find)

    def opened(self) -> Kernel:
        self.asked.append("socket")
        self._refuse(0)
        return self

    def find(self, program: str) -> None:
        self.asked.append(program)

    def add(self, name: str, kind: str, interface: str) -> None:
        self._refuse(1)
        self.name = name

    def devices(self) -> dict[str, int]:
        return {self.name: 3}

    def delete(self, index: int) -> None:
        self.asked.append(f"delete {index}")

    def close(self) -> None:
        self.asked.append("close")

    def _refuse(self, at: int) -> None:
        if self.refuses and self.at == at:
            raise OSError(self.refuses, os.strerror(self.refuses))


def test_a_kernel_that_listens_in_the_namespace_serves_and_the_probe_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    assert soft_roce.problem(load=False) is None
    assert kernel.asked == ["socket", "delete 3", "close"]


def test_a_kernel_that_listens_in_the_first_namespace_only_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch, listens=False)
    assert "listens in the machine's first network namespace only" in str(soft_roce.problem(load=False))
    assert kernel.asked[-2:] == ["delete 3", "close"]


@pytest.mark.parametrize(
    ("refuses", "at", "words"),
    [
        (errno.EPROTONOSUPPORT, 0, "no RDMA in this kernel (Protocol not supported): modprobe -a rdma_rxe"),
        (errno.EINVAL, 1, "no Soft-RoCE in this kernel (Invalid argument): modprobe -a rdma_rxe"),
        (errno.EPERM, 1, "by the machine's root only: run hpn as root, or run it with --engine uml"),
    ],
)
def test_what_a_kernel_lacks_is_said_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, refuses: int, at: int, words: str
) -> None:
    Kernel(monkeypatch, refuses, at)
    said = str(soft_roce.problem(load=False))
    assert words in said
    assert "\n" not in said


def test_modules_are_loaded_for_a_lab_and_not_for_whoever_only_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch, errno.EPROTONOSUPPORT)
    soft_roce.problem(load=False)
    assert kernel.asked == ["socket"]
    soft_roce.problem(load=True)
    assert kernel.asked == ["socket", "socket", "modprobe"]
