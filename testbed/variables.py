"""Environment variables that hpn reads, or sets for programs it runs, as documented. Pure.

Each is read where it is needed; a test compares this list with the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hpn.testbed.entries import Registry


class Side(StrEnum):
    """Direction of a variable: who sets it for whom."""

    USER = "You to hpn"
    CLIENT = "hpn to the programs of a client"
    GUEST = "hpn to itself in a guest kernel"


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable."""

    name: str
    side: Side
    summary: str


VARIABLES: Registry[Variable] = Registry(
    "environment variable",
    lambda variable: variable.name,
    (
        Variable("HPN_PLUGINS", Side.USER, "folders with plug-ins, ':' between them, as `--plugin`"),
        Variable("HPN_STALL_LIMIT", Side.USER, "seconds a guest's clock may stand, as `--stall-limit`"),
        Variable(
            "HPN_STATE_DIR",
            Side.USER,
            "where labs are kept; else /run/hpn for root, `$XDG_RUNTIME_DIR/hpn` or /tmp/hpn-UID for others",
        ),
        Variable("HPN_CACHE_DIR", Side.USER, "kernels, times of runs, index of results; else `$XDG_CACHE_HOME/hpn`"),
        Variable("XDG_RUNTIME_DIR", Side.USER, "in whose folder hpn labs are kept, where HPN_STATE_DIR is not set"),
        Variable(
            "XDG_CACHE_HOME",
            Side.USER,
            "in whose folder hpn the cache is without HPN_CACHE_DIR; else ~/.cache",
        ),
        Variable("XDG_CONFIG_HOME", Side.USER, "in whose folder hpn your own config.toml is; else ~/.config"),
        Variable("HPN_RANK", Side.CLIENT, "which rank a process is, from 0"),
        Variable("HPN_WORLD_SIZE", Side.CLIENT, "of how many ranks"),
        Variable("HPN_HOST", Side.CLIENT, "the host it is on: p0.s1.h0"),
        Variable("HPN_NIC", Side.CLIENT, "its NIC: p0.s1.h0.r0"),
        Variable("HPN_ADDRESS", Side.CLIENT, "the IP address of its NIC"),
        Variable("HPN_INTERFACE", Side.CLIENT, "the interface of its NIC, the LAG"),
        Variable("HPN_ADDRESSES", Side.CLIENT, "addresses of all ranks in their order, with commas"),
        Variable("HPN_HOSTS", Side.CLIENT, "hosts of all ranks in their order, with commas"),
        Variable("HPN_RENDEZVOUS", Side.CLIENT, "its working folder, the same for all ranks; gone with the run"),
        Variable("HPN_NAMESPACES", Side.CLIENT, "a folder with a network namespace's file for every node"),
        Variable("HPN_UNTIL_NS", Side.CLIENT, "with `starts: begin`: when the run ends, CLOCK_MONOTONIC in ns"),
        Variable("HPN_ACCELERATOR", Side.GUEST, "what QEMU runs on: kvm, or tcg and why not kvm"),
        Variable("HPN_BEGIN_ON_WHOLE_SECOND", Side.GUEST, "in virtual time: begin when the clock has a whole second"),
    ),
    of=Variable,
)
"""Variables by name, in the order of the docs."""
