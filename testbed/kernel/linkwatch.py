"""The kernel's link watcher, hurried: when many interfaces change their carrier at once, all are told at once.

A change of carrier counts (messages, queues that send or drop) only when a work item of the kernel has carried it out,
which takes 100 interfaces at a run and then waits for up to a second, whatever is left (net/core/link_watch.c). One
kernel here stands for many switches: when a ToR with 196 ports dies, 392 ends change, and the last of its neighbours
would hear of it seconds after the first. Whoever asks for one interface has what is pending there carried out first
(RTM_GETLINK; ``linkwatch_sync_dev``, since Linux 6.8): so those that matter are asked for. An older kernel answers and
lets it wait.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink, NetlinkError

AT_A_RUN = 100
"""Interfaces that the watcher takes at once (MAX_DO_DEV_PER_LOOP)."""

_UNREAD = 32
"""Answers that wait to be read at most: each takes up to 4 kB of a socket's 208."""


def carry_out(netlink: Netlink, ifindexes: Iterable[int]) -> None:
    """Have what is pending for these interfaces of the socket's namespace carried out by the return.

    What is gone meanwhile is passed over. NetlinkError when the kernel refuses anything else.
    """
    _ask(netlink, [rtnl.get_link(ifindex) for ifindex in ifindexes])


def carry_out_far(netlink: Netlink, ifindexes: Iterable[int]) -> None:
    """The same for the far ends of these veths, in whatever namespace they are."""
    peers = netlink.peers()
    _ask(netlink, [rtnl.get_link(*peers[ifindex]) for ifindex in ifindexes if ifindex in peers])


def _ask(netlink: Netlink, requests: Sequence[bytes]) -> None:
    for start in range(0, len(requests), _UNREAD):
        try:
            netlink.run(requests[start : start + _UNREAD])
        except NetlinkError as error:
            if error.errno != errno.ENODEV:
                raise
