"""Forced processing of the kernel's pending carrier changes, so that all interfaces react at once.

A carrier change takes effect (messages, queues that send or drop) only when a kernel work item has processed it.
The work item takes 100 interfaces at a run and then waits for up to a second, whatever is left
(net/core/link_watch.c). One kernel here represents many switches: when a ToR with 196 ports fails, 392 ends change.
The last of its neighbours would learn of it seconds after the first. A request for one interface makes the kernel
process its pending change first (RTM_GETLINK; ``linkwatch_sync_dev``, since Linux 6.8), so the relevant interfaces
are requested. An older kernel answers without doing so.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink, NetlinkError

AT_A_RUN = 100
"""Interfaces that the watcher processes per run (MAX_DO_DEV_PER_LOOP)."""

_UNREAD = 32
"""Maximum of unread answers: each takes up to 4 kB of a socket's 208."""


def carry_out(netlink: Netlink, ifindexes: Iterable[int]) -> None:
    """Process pending carrier changes of these interfaces in the socket's namespace before returning.

    Interfaces that no longer exist are skipped. NetlinkError when the kernel refuses anything else.
    """
    _ask(netlink, [rtnl.get_link(ifindex) for ifindex in ifindexes])


def carry_out_far(netlink: Netlink, ifindexes: Iterable[int]) -> None:
    """Process pending carrier changes of the far ends of these veths, in whatever namespace they are."""
    peers = netlink.peers()
    _ask(netlink, [rtnl.get_link(*peers[ifindex]) for ifindex in ifindexes if ifindex in peers])


def _ask(netlink: Netlink, requests: Sequence[bytes]) -> None:
    for start in range(0, len(requests), _UNREAD):
        try:
            netlink.run(requests[start : start + _UNREAD])
        except NetlinkError as error:
            if error.errno != errno.ENODEV:
                raise
