"""Stacked ToRs that monitor each other, with the failure behaviour of the HPN paper (section 4).

``testbed.lab.stack_member`` makes a ToR's decisions; ``Stacks`` runs the members of a lab:

* Data planes synchronise over the peer link. Here: every ``sync_ms`` a member sends a packet to itself by way of the
  peer's forwarding, as BFD's echo does (RFC 5880 section 6.4). A peer that no longer forwards no longer returns it.
* Control planes communicate out of band. The fabric has no such network: members exchange keepalives inside this
  process, every ``keepalive_ms``, as long as the daemons of both live. So this channel never fails by itself.

A member that shuts itself down takes down all its ports but the peer link's. It comes back when the cause has been
cleared for as long as it takes to lose sync. The paper gives no timers; these are ours (``StackSpec``).
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from ipaddress import ip_address

from hpn.testbed.background import in_background
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Fabric, Link, Stack
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet import PacketSocket
from hpn.testbed.kernel.rtnetlink.htb import CS6
from hpn.testbed.lab.breaking.breakage import Breakage
from hpn.testbed.lab.parts import LabParts
from hpn.testbed.lab.stack_member import Decision, Member, timers

_IPV4, _UDP, _TTL = 0x0800, 17, 64
_SYNC_PORT = 4790
_NOBODY = "192.0.2.1"
"""Source address of sync packets (RFC 5737): the kernel would refuse one that either end owns."""


class Stacks:
    """Stacks of a lab, and the software version of each ToR in them; none in a fabric without stacks."""

    def __init__(self, grips: LabParts, breakage: Breakage) -> None:
        self._lab = grips
        self._breakage = breakage
        self._clock = timers(grips.fabric.spec.stack)
        self._versions = dict(_versions(grips.fabric))
        self._members: dict[str, Member] = {}  # ToRs that are alive
        self._syncs: dict[str, _Sync] = {}
        self._reloading: dict[str, asyncio.TimerHandle | asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start to monitor; the ToRs are running."""
        now = now_ns()
        for tor, stack in self._lab.fabric.stack_of.items():
            space = self._lab.spaces[tor]
            self._syncs[tor] = _Sync(self._lab.fabric.link(stack.peer_link), tor, space, self._on_sync)
            self._members[tor] = self._member(tor, now)
        if self._syncs:
            self._tick()

    def close(self) -> None:
        """Stop monitoring."""
        for handle in (self._timer, *self._reloading.values()):
            if handle is not None:
                handle.cancel()
        for sync in self._syncs.values():
            sync.close()
        self._syncs.clear()

    def reload(self, tor: str, version: str, away_ns: int) -> None:
        """Take down a ToR, stacked or not, at once and boot it after ``away_ns`` with that version."""
        self._versions[tor] = version
        self._breakage.crash([tor])

        def boot() -> None:
            self._reloading[tor] = in_background(self._boot(tor))

        self._reloading[tor] = asyncio.get_running_loop().call_later(away_ns / 1e9, boot)

    async def restore(self, tor: str) -> None:
        """Reload a ToR with its original version, without an extra delay."""
        pending = self._reloading.pop(tor, None)
        if isinstance(pending, asyncio.Task):
            await pending
        elif pending is not None:
            pending.cancel()
        self._versions = {**self._versions, tor: dict(_versions(self._lab.fabric)).get(tor, "")}
        self._breakage.crash([tor])
        await self._boot(tor)

    async def _boot(self, tor: str) -> None:
        await self._breakage.boot([tor])
        if tor in self._syncs:
            self._members[tor] = self._member(tor, now_ns())

    def _member(self, tor: str, now: int) -> Member:
        """Return the state of a ToR that has just booted.

        The configured primary boots as primary, and gives way if the other ToR has taken over.
        """
        stack = self._lab.fabric.stack_of[tor]
        return Member(self._clock, self._versions[tor], stack.primary == tor, now)

    def _tick(self) -> None:
        now = now_ns()
        for stack in self._lab.fabric.stacks:
            self._act(stack, now)
        self._timer = asyncio.get_running_loop().call_later(self._clock.tick_ns / 1e9, self._tick)

    def _act(self, stack: Stack, now: int) -> None:
        tors = self._lab.tors
        for tor in (stack.primary, stack.secondary):
            if not tors[tor].alive:
                self._members.pop(tor, None)
            elif tor not in self._members:
                self._members[tor] = self._member(tor, now)
        running = [tor for tor in (stack.primary, stack.secondary) if tor in self._members and tors[tor].running]
        for tor in running:
            self._syncs[tor].send()
            if stack.other(tor) in running:
                self._members[tor].on_keepalive(self._members[stack.other(tor)].keepalive, now)
        for tor in running:
            decision = self._members[tor].on_tick(now)
            if decision is not None:
                self._carry_out(tor, stack, decision, now)

    def _carry_out(self, tor: str, stack: Stack, decision: Decision, now: int) -> None:
        reason = self._members[tor].reason
        detail = {"reason": reason.value} if reason is not None else {}
        self._lab.emit(Event(now, EventKind.DAEMON, tor, "stack", decision.value, detail))
        ends = [(link, tor) for link in self._lab.fabric.links_of(tor) if link.name != stack.peer_link]
        if decision is Decision.SHUT_DOWN:
            self._breakage.ports_down(ends, by=tor)
        elif decision is Decision.RETURN:
            self._breakage.ports_up(ends, by=tor)

    def _on_sync(self, tor: str) -> None:
        if tor in self._members and self._lab.tors[tor].running:
            self._members[tor].on_sync(now_ns())


class _Sync:
    """Sync packets of one ToR: sent over the peer link and returned by the peer's forwarding."""

    def __init__(self, link: Link, tor: str, space: NetNs, heard: Callable[[str], None]) -> None:
        here = link.end_at(tor)
        self._packet = sync_packet(here.ip)
        self._peer_mac = link.far_end(tor).mac
        self._out = PacketSocket(space, here.name, _IPV4)
        self._in = space.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, 0)
        self._in.bind((here.ip, _SYNC_PORT))
        self._tor, self._heard = tor, heard
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._in.fileno(), self._readable)

    def send(self) -> None:
        """Send one packet, which is lost when the link is down."""
        self._out.send(self._packet, self._peer_mac)

    def close(self) -> None:
        """Stop sending and receiving, and close the sockets."""
        self._loop.remove_reader(self._in.fileno())
        self._in.close()
        self._out.close()

    def _readable(self) -> None:
        try:
            self._in.recv(64)
        except OSError:
            return
        self._heard(self._tor)


def sync_packet(address: str) -> bytes:
    """Return an empty UDP packet to ``address``, from an unowned address, without a UDP checksum."""
    ends = ip_address(_NOBODY).packed + ip_address(address).packed
    header = struct.pack("!BBHHHBBH", 0x45, CS6 << 2, 28, 0, 0, _TTL, _UDP, 0) + ends
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    return header[:10] + struct.pack("!H", checksum) + header[12:] + struct.pack("!HHHH", _SYNC_PORT, _SYNC_PORT, 8, 0)


def _versions(fabric: Fabric) -> Iterator[tuple[str, str]]:
    for stack in fabric.stacks:
        yield stack.primary, stack.primary_version
        yield stack.secondary, stack.secondary_version
