"""Packet capture on links of a running lab, from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import BinaryIO

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.model import Fabric, Link
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.capture import Capture, Captured, Tap
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.lab.wire import NETNS_DIR
from hpn.testbed.versions import HPN


def links_of(fabric: Fabric, names: Sequence[str]) -> list[Link]:
    """Return the links of ``names`` (links, NICs, nodes; none: the whole lab), each once, in their order."""
    return fabric.links_of_all(names) or list(fabric.links)


def capture(
    first_pid: int, links: Sequence[Link], file: BinaryIO, snap_bytes: int, for_ns: int | None
) -> list[Captured]:
    """Capture traffic on ``links`` to ``file`` as pcapng, for ``for_ns`` or until Ctrl-C; return counts per link.

    Each is captured at its upper end. The calling process stays in the lab's network afterwards. MachineError when
    the lab or a node cannot be entered.
    """
    sandbox.enter(first_pid, for_its_network=True)
    spaces = {node: space_of(first_pid, node) for node in dict.fromkeys(link.upper.node for link in links)}
    taps = [Tap(link.name, spaces[link.upper.node], link.upper.name, link.rate_bps) for link in links]
    with closing(Capture(taps, file, f"hpn {HPN}", snap_bytes)) as found, suppress(KeyboardInterrupt):
        found.run(None if for_ns is None else time.monotonic_ns() + for_ns)
    return found.captured


def space_of(first_pid: int, node: str) -> NetNs:
    """Return the network namespace of a node, for a process that has entered the lab's network.

    MachineError when it cannot be entered.
    """
    try:
        return NetNs(node, os.open(sandbox.root_of(first_pid, NETNS_DIR / node), os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise MachineError(f"cannot enter {node}: {error.strerror}") from error
