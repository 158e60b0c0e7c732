"""Packets of a flow keep to one CPU, so that they cannot overtake each other where CPUs take turns."""

from __future__ import annotations

import os
import subprocess

import pytest

from hpn.testbed.lab.wire import cpu_mask, one_cpu_a_flow
from tests.lab.running import running, tiny


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [
        ([0, 1], "3"),
        ([1, 1, 3], "a"),
        ([0, 31], "80000001"),
        ([32], "1,00000000"),
        ([2, 33, 64], "1,00000002,00000004"),
    ],
)
def test_a_mask_is_written_in_words_of_32_cpus_the_highest_first(cpus: list[int], mask: str) -> None:
    assert cpu_mask(cpus) == mask


def test_where_there_is_one_cpu_nothing_is_steered() -> None:
    assert one_cpu_a_flow({3}) == ()
    assert [setting.value for setting in one_cpu_a_flow({0, 1})] == ["3"]


@pytest.mark.kernel
async def test_every_port_of_a_lab_that_keeps_them_in_order_steers_its_flows_over_the_cpus_that_the_lab_has() -> None:
    own = os.sched_getaffinity(0)
    async with running(tiny(), in_order=True) as lab:
        if any(setting in lab.wiring.missing for setting in one_cpu_a_flow(own)):
            pytest.skip("this kernel has no receive packet steering per namespace")
        for node in ("p0.s0.t0.0", "p0.s0.h0"):
            look = "mount -t sysfs sysfs /mnt; cat /mnt/class/net/*[0-9]/queues/rx-0/rps_cpus"
            inside = ["nsenter", f"--net=/run/netns/{node}", "unshare", "--mount", "sh", "-ec", look]
            ports = subprocess.run(inside, check=True, capture_output=True, text=True).stdout.split()
            wanted = cpu_mask(own) if len(own) > 1 else "0"
            assert len(ports) >= 2
            assert {port.replace(",", "").lstrip("0") or "0" for port in ports} == {wanted.replace(",", "")}
