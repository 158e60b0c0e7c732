"""Ports to which adapters bind new queue pairs (queue affinity): in turn, in the order in which a library makes them.

Mlx5's driver gives each new queue pair of a process the next port, beginning with the second (qp.c,
get_tx_affinity_rr). A library such as NCCL makes the queue pairs of a connection one after the other: those by which it
receives from a peer, then those by which it sends to one. So with one queue pair a connection all senders of a NIC of
two ports get the same port, as NVIDIA/nccl PR 2315 reports; with two they use both. With ``nic.affinity: explicit`` the
library sets each queue pair's port, as that change does: ends that send take turns among themselves, and so do those
that receive. Pure.
"""

from __future__ import annotations

from hpn.testbed.fabric.model import Fabric, Nic


class PortTurns:
    """Turns of every NIC, for connections of ``queue_pairs`` each."""

    def __init__(self, queue_pairs: int, *, explicit: bool = False) -> None:
        self._queue_pairs = queue_pairs
        self._each = 1 if explicit else 2  # ends of a peer that one counter counts
        self._sends: dict[str, dict[str, int]] = {}  # NIC: peer to its number
        self._receives: dict[str, dict[str, int]] = {}

    def of_sender(self, src: Nic, dst: Nic, k: int) -> int:
        """Return the port of the sending end of the ``k``-th queue pair of a connection."""
        return self._turn(src, self._each * _number(self._sends, src, dst) + self._each - 1, k)

    def of_receiver(self, src: Nic, dst: Nic, k: int) -> int:
        """Return the port of its receiving end, by which acknowledgements leave."""
        return self._turn(dst, self._each * _number(self._receives, dst, src), k)

    def _turn(self, nic: Nic, ends_before: int, k: int) -> int:
        return (ends_before * self._queue_pairs + k + 1) % len(nic.links)


def turns_of(fabric: Fabric, queue_pairs: int) -> PortTurns | None:
    """Return the turns of a fabric's NICs; None where a LAG hashes queue pairs."""
    nic = fabric.spec.nic
    return PortTurns(queue_pairs, explicit=nic.affinity == "explicit") if nic.binds else None


def _number(known: dict[str, dict[str, int]], nic: Nic, peer: Nic) -> int:
    peers = known.setdefault(nic.name, {})
    return peers.setdefault(peer.name, len(peers))
