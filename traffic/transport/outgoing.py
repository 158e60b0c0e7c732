"""Send path of a worker: the packets of a tick are written together and handed over in one system call.

With io_uring it is one call for all sockets. Without it, and for packets that the kernel refuses, it is one sendmmsg
per socket.

A packet is three pieces in memory: its headers with the 16 payload bytes that vary, the fill that all packets share,
and pad and ICRC. So no payload is copied, and only odd sizes and replies cost Python time per packet.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hpn.testbed.errors import MachineError
from hpn.traffic.flows.framing import BTH_BYTES, ICRC_BYTES, IMMEDIATE_BYTES, RETH_BYTES
from hpn.traffic.flows.ip_layer import IPV4, UDP_BYTES, IpLayer
from hpn.traffic.io.ringmsg import RingSender
from hpn.traffic.io.sendmmsg import PacketRows
from hpn.traffic.io.uring import Ring
from hpn.traffic.streams import wire
from hpn.traffic.transport.packets import (
    Envelope,
    Opcode,
    Reth,
    pack_ack,
    pack_cnp,
    pack_echo,
    pack_ip,
    pack_note,
    pack_probe,
    pack_read_response,
    pack_write,
)
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.syndromes import SYNDROME_ACK
from hpn.traffic.transport.telemetry import Telemetry
from hpn.traffic.transport.write_entries import U64, Entry, many_entry, ready_entry, run_entry
from hpn.traffic.transport.writer import FrameWriter

_MOST_BYTES = UDP_BYTES + BTH_BYTES + RETH_BYTES + IMMEDIATE_BYTES + ICRC_BYTES  # around a payload, without IP
_AGAIN, _INTERRUPTED = errno.EAGAIN, errno.EINTR
_BUG = frozenset({errno.EBADF, errno.EFAULT, errno.EINVAL, errno.ENOTSOCK})


class Outgoing:
    """Packets of queue pairs with one path MTU on their way to the kernel, at most ``capacity`` at a time.

    Open the paths first; then in each tick add runs and replies, and call ``send``. Packets that the kernel had no room
    for are ``held`` and go first at the next ``send``. Packets of one socket stay in order.
    """

    def __init__(self, capacity: int, path_mtu: int, ring: Ring | None = None, ip: IpLayer = IPV4) -> None:
        """Create the queue of packets of ``ip``; with a ``ring`` one system call hands over those of all sockets."""
        self.refused: dict[int, Counter[str]] = {}  # by socket: packets by the name of the error
        self._path_mtu = path_mtu
        self._rows = PacketRows(capacity, bytes([wire.FILL]) * path_mtu, ip)
        self._writer = FrameWriter(self._rows, path_mtu)
        self._all_at_once = None if ring is None else RingSender(ring, self._rows)
        self._sockets: list[int] = []  # of the paths
        self._entries: dict[int, list[Entry]] = {}  # by socket
        self._held: list[tuple[int, int, int]] = []  # socket, its rows; from row 0 on
        self._room = capacity

    def open_path(self, fd: int, envelope: Envelope, ack_every: int = 1) -> int:
        """Open a path with this envelope through the raw socket ``fd``; return its number.

        Every ``ack_every``-th packet of a message, and its last, requests an acknowledgement.
        """
        self._sockets.append(fd)
        self._entries.setdefault(fd, [])
        self.refused.setdefault(fd, Counter())
        return self._writer.open_path(envelope, ack_every)

    def move_path(self, path: int, envelope: Envelope) -> None:
        """Send ``path`` with another envelope from the next ``send`` on, as after a change of source port."""
        self._writer.move_path(path, envelope)

    @property
    def room(self) -> int:
        """Number of packets that may still be added."""
        return self._room

    def held(self, fd: int) -> int:
        """Return how many packets wait because the kernel had no room for them at the last ``send``."""
        return sum(end - first for to, first, end in self._held if to == fd)

    def add(self, path: int, run: Run, words: U64, sent_ns: int) -> None:
        """Send ``run``, each packet with its word, all with the send time ``sent_ns``. ValueError without room."""
        self._add(path, run_entry(path, run, words, sent_ns, self._path_mtu))

    def add_ack(self, path: int, psn: int, syndrome: int, msn: int, *, becn: bool = False) -> None:
        """Send an ACK or NAK of ``psn`` with the number of messages completed so far. ValueError without room.

        ``becn``: the acknowledged packets carried congestion marks.
        """
        if becn:
            to = self._writer.envelopes[path]
            packet = pack_ip(to, pack_ack(to, psn, syndrome, msn, becn=True))
        else:
            packet = self._writer.acknowledgement(path, psn, syndrome, msn)
        self._add(path, ready_entry(path, packet, self._path_mtu))

    def add_many(self, paths: Sequence[int], run: Run, words: U64, sent_ns: int) -> None:
        """Send ``run``, each packet by its own path of ``paths``, all of one socket. ValueError without room."""
        self._add(paths[0], many_entry(paths, run, words, sent_ns, self._path_mtu))

    def add_path_probe(self, path: int, psn: int) -> None:
        """Send a probe of a path of many: a WRITE without payload. ValueError without room."""
        to = self._writer.envelopes[path]
        probe = pack_write(to, Opcode.WRITE_ONLY, psn, b"", ack_requested=True, reth=Reth(0, 0))
        self._add(path, ready_entry(path, pack_ip(to, probe), self._path_mtu))

    def add_sack(self, path: int, psn: int, msn: int, payload: bytes) -> None:
        """Send a selective acknowledgement. ValueError without room."""
        to = self._writer.envelopes[path]
        packet = pack_ip(to, pack_read_response(to, psn, SYNDROME_ACK, msn, payload))
        self._add(path, ready_entry(path, packet, self._path_mtu))

    def add_cnp(self, path: int) -> None:
        """Send a congestion notification. ValueError without room."""
        to = self._writer.envelopes[path]
        self._add(path, ready_entry(path, pack_ip(to, pack_cnp(to)), self._path_mtu))

    def add_probe(self, path: int, sent_ns: int) -> None:
        """Send a probe of the switches on the way. ValueError without room."""
        to = self._writer.envelopes[path]
        self._add(path, ready_entry(path, pack_ip(to, pack_probe(to, sent_ns)), self._path_mtu))

    def add_echo(self, path: int, telemetry: Telemetry) -> None:
        """Send what a probe has brought back to its sender. ValueError without room."""
        to = self._writer.envelopes[path]
        self._add(path, ready_entry(path, pack_ip(to, pack_echo(to, telemetry)), self._path_mtu))

    def add_note(self, path: int, qpn: int, immediate: int, source_qpn: int | None = None) -> None:
        """Send a note to another queue pair at the path's end (``pack_note``). ValueError without room."""
        to = replace(self._writer.envelopes[path], qpn=qpn)
        self._add(path, ready_entry(path, pack_ip(to, pack_note(to, 0, immediate, source_qpn)), self._path_mtu))

    def _add(self, path: int, entry: Entry) -> None:
        count = entry.packets
        if count > self._room or count != len(entry.words):
            raise ValueError(f"{count} packets with {len(entry.words)} words, and room for {self._room}")
        self._room -= count
        self._entries[self._sockets[path]].append(entry)

    def send(self) -> int:
        """Hand over held and added packets; return how many are done.

        A packet that the kernel refuses is done too, and lost as on a failed link; ``refused`` counts the reasons.
        MachineError when the path MTU does not fit an interface.
        """
        held: list[tuple[int, int, int]] = []
        segments = [*self._held, *self._write()]
        done = 0
        if self._all_at_once is not None and segments and not self._held:
            done = self._all_at_once.hand_over(segments)
            segments = [(fd, max(first, done), end) for fd, first, end in segments if end > done]
        for fd, first, end in segments:
            at = first if any(fd == blocked for blocked, _, _ in held) else self._hand_over(fd, first, end)
            done += at - first
            if at < end:
                held.append((fd, at, end))
        self._hold(held)
        return done

    def _write(self) -> list[tuple[int, int, int]]:
        """Fill the rows after the held ones with everything that was added; return each socket's rows."""
        first = at = self._held[-1][2] if self._held else 0
        segments, entries = [], []
        for fd, added in self._entries.items():
            if added:
                end = at + sum([entry.packets for entry in added])
                segments.append((fd, at, end))
                entries += added
                added.clear()
                at = end
        if entries:
            self._writer.write(first, entries)
        return segments

    def _hand_over(self, fd: int, first: int, end: int) -> int:
        """Send rows of one socket; return the row that the kernel had no room for, or ``end``."""
        while first < end:
            taken, code = self._rows.hand_over(fd, first, end)
            first += taken
            if code == _AGAIN:
                break
            if code and code != _INTERRUPTED:
                self._refuse(fd, code)
                first += 1
        return first

    def _refuse(self, fd: int, code: int) -> None:
        reason = os.strerror(code)
        if code == errno.EMSGSIZE:
            raise MachineError(
                f"cannot send packets of path MTU {self._path_mtu} ({reason}); every interface on the way"
                f" needs an MTU of {self._rows.ip.HEADER_BYTES + _MOST_BYTES + self._path_mtu} or more"
            )
        if code in _BUG:
            raise OSError(code, f"sendmmsg: {reason}")
        self.refused[fd][errno.errorcode.get(code, str(code))] += 1

    def _hold(self, segments: list[tuple[int, int, int]]) -> None:
        """Keep these rows for the next ``send``, at the front."""
        self._held = []
        at = 0
        for fd, first, end in segments:
            self._rows.bring_forward(first, end, at)
            self._held.append((fd, at, at + end - first))
            at += end - first
        self._room = self._rows.capacity - at
