"""Packet order within flows on a machine of several CPUs. Pure.

A veth passes packets to the backlog of the CPU that runs it. A port's token bucket is drained by whichever CPU its
timer or the next sender runs on. Two packets of a flow may then wait in two backlogs, and the later one may come out
first. If a queue pair goes back N for it, packets are retransmitted although the network lost none. Measured in an
incast at full load on two CPUs: 88 to 445 of 62,000; with this setting none. Receive packet steering gives a flow one
CPU all the way. It costs a tenth of the packets per CPU second, and a worker loses more time to its flows' CPU.
Packets overtake at queues that several CPUs feed: labs of jobs with a congestion control have them.
"""

from __future__ import annotations

from collections.abc import Collection

from hpn.testbed.routing.ecmp import Sysctl

_WORD = 32  # bits of a CPU mask between commas (Documentation/core-api/cpu_hotplug, cpumask in hexadecimal)


def one_cpu_a_flow(cpus: Collection[int]) -> tuple[Sysctl, ...]:
    """Return the sysctl of a namespace without interfaces yet, for a lab that runs on ``cpus``.

    Empty for a single one. Linux has it per namespace since 6.3; without it the manifest lists it as absent.
    """
    if len(cpus) < 2:
        return ()
    why = "packets of a flow may overtake each other where they change CPUs (Linux 6.3 keeps them in order)"
    return (Sysctl("net/core/rps_default_mask", cpu_mask(cpus), False, why),)


def cpu_mask(cpus: Collection[int]) -> str:
    """Format CPUs as a kernel mask: words of 32 bits in hexadecimal, the highest first."""
    bits = sum(1 << cpu for cpu in set(cpus))
    words = [bits >> shift & (1 << _WORD) - 1 for shift in range(0, max(bits.bit_length(), 1), _WORD)]
    return ",".join([f"{words[-1]:x}", *(f"{word:08x}" for word in reversed(words[:-1]))])
