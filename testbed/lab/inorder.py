"""What keeps the packets of a flow in order on a machine of several CPUs. Pure.

A veth hands what it sends to the backlog of the CPU that runs it, and a port's token bucket is emptied by whichever CPU
its timer or the next sender happens to run on: two packets of a flow then wait in two backlogs, and the later one may
come out first. Where a queue pair goes back N for it, a network that lost nothing has packets sent again (an incast at
full load on two CPUs: 88 to 445 of 62,000; with this none). Receive packet steering gives a flow one CPU all the way.
It costs a tenth of the packets that a CPU second carries, and a worker more of its time on the CPU that its flows are
on. Packets overtake where a queue stands that several CPUs feed: labs of jobs with a congestion control have it.
"""

from __future__ import annotations

from collections.abc import Collection

from hpn.testbed.routing.ecmp import Sysctl

_WORD = 32  # bits of a CPU mask between commas (Documentation/core-api/cpu_hotplug, cpumask in hexadecimal)


def one_cpu_a_flow(cpus: Collection[int]) -> tuple[Sysctl, ...]:
    """The setting of a namespace whose interfaces are still to be made, for a lab that runs on ``cpus``.

    Nothing for a single one. Linux has it per namespace since 6.3; without it the manifest says that it is absent.
    """
    if len(cpus) < 2:
        return ()
    why = "packets of a flow may overtake each other where they change CPUs (Linux 6.3 keeps them in order)"
    return (Sysctl("net/core/rps_default_mask", cpu_mask(cpus), False, why),)


def cpu_mask(cpus: Collection[int]) -> str:
    """CPUs as the kernel writes a set of them: words of 32 bits in hexadecimal, the highest first."""
    bits = sum(1 << cpu for cpu in set(cpus))
    words = [bits >> shift & (1 << _WORD) - 1 for shift in range(0, max(bits.bit_length(), 1), _WORD)]
    return ",".join([f"{words[-1]:x}", *(f"{word:08x}" for word in reversed(words[:-1]))])
