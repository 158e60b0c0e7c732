"""The limit of open files raised to what is needed: to the hard limit by anybody, beyond it by root of the machine."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from hpn.testbed.kernel.process import open_files

_NOBODY = 65534
_CAP_SYS_RESOURCE = 24


def _may_raise_hard_limits() -> bool:
    """Root of a machine may; root of a container may lack the capability for it."""
    (effective,) = re.findall(r"^CapEff:\s*(\w+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return bool(int(effective, 16) >> _CAP_SYS_RESOURCE & 1)


def _in_a_child(body: Callable[[], bool]) -> bool:
    """Whether ``body`` is true in a process of its own, which limits it may lower for good."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if body() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _allow(count: int) -> tuple[int | None, tuple[int, int]]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))
    return open_files.allow(count), resource.getrlimit(resource.RLIMIT_NOFILE)


def test_a_limit_that_is_high_enough_stays() -> None:
    assert _in_a_child(lambda: _allow(10) == (None, (64, 128)))


def test_anybody_gets_up_to_the_hard_limit() -> None:
    assert _in_a_child(lambda: _allow(100) == (None, (100, 128)))
    assert _in_a_child(lambda: _allow(128) == (None, (128, 128)))


def test_who_may_not_raise_the_hard_limit_is_told_it() -> None:
    def body() -> bool:
        if os.geteuid() == 0:
            os.setuid(_NOBODY)  # and with it goes the capability
        return _allow(129) == (128, (64, 128))

    assert _in_a_child(body)


@pytest.mark.skipif(not _may_raise_hard_limits(), reason="needs CAP_SYS_RESOURCE")
def test_root_gets_what_is_needed() -> None:
    assert _in_a_child(lambda: _allow(129) == (None, (129, 129)))
