"""The CPU of a guest: its own while there are enough, some CPU when there are not, and really the only one."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from hpn.testbed.vm.group import ProcessGroup
from hpn.testbed.vm.uml import own_cpu


@pytest.mark.kernel  # socket names are a network namespace's own: no guest of anybody else disturbs
def test_guests_share_a_cpu_only_when_there_are_more_guests_than_cpus() -> None:
    allowed = os.sched_getaffinity(0)
    with ExitStack() as stack:
        cpus = [stack.enter_context(own_cpu()) for _ in allowed]
        assert len(set(cpus)) == len(cpus)
        assert stack.enter_context(own_cpu()) in allowed


@pytest.mark.kernel
def test_a_claim_ends_with_its_guest_however_that_ended() -> None:
    with own_cpu() as first:
        pass
    with pytest.raises(OSError, match="guest"), own_cpu():
        raise OSError("the guest's own trouble")
    with own_cpu() as again:
        assert again == first


def test_a_program_runs_on_its_cpu_only(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    said = tmp_path / "said"
    command = ["/bin/sh", "-c", "grep Cpus_allowed_list /proc/self/status"]
    with said.open("wb") as output:
        group = ProcessGroup(command, cwd=tmp_path, environment={"PATH": os.defpath}, output=output.fileno(), cpu=cpu)
        try:
            assert group.ended(10)
        finally:
            group.kill()
    assert said.read_text().split() == ["Cpus_allowed_list:", str(cpu)]
