"""rtnetlink: one request socket per namespace, whole batches in one send, dumps and route look-ups.

It has its own encoding instead of pyroute2's, because set-up speed matters: in a batch of thousands a request costs
about 10 us here and 200 us there. pyroute2 is the reference implementation of these bytes in the tests.
Layouts: linux/rtnetlink.h, linux/if_link.h, linux/neighbour.h, linux/pkt_sched.h.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hpn.testbed.events import now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.buffers import enlarge_receive
from hpn.testbed.kernel.rtnetlink import mmu, nlmsg, rtnl, rtnl_events, seg6
from hpn.testbed.kernel.rtnetlink.htb import SECOND_CLASS
from hpn.testbed.kernel.rtnetlink.mmu import ClassCounters
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading, Queues, parse_bucket, parse_kind
from hpn.testbed.kernel.rtnetlink.red import parse_marked
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, NeighbourEvent, RouteEvent

_MARKING: Mapping[str, Callable[[bytes], int]] = {"red": parse_marked, mmu.KIND: mmu.parse_marked}
"""Disciplines that mark: the packets that one has marked since its creation, from its RTM_NEWQDISC."""
_CHUNK = 60_000
_RECEIVE = 1 << 18
_READ_AT_ONCE = 256
"""Messages that a monitor reads before it yields to the event loop: about a millisecond."""
_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP, _NETLINK_EXT_ACK, _NETLINK_GET_STRICT_CHK = 270, 1, 11, 12
_GROUP_LINK, _GROUP_NEIGHBOUR, _GROUP_IPV4_ROUTE = 1, 3, 7


class NetlinkError(OSError):
    """The kernel refused a request; the message names the request and the kernel's explanation, if any."""


class OverrunError(Exception):
    """The kernel dropped multicast messages: the reader's state may be stale and must be read again."""


@dataclass(frozen=True, slots=True)
class Hop:
    """Next hop of a packet: out interface, gateway (None: the destination is on that link)."""

    oif: int
    gateway: str | None


class Netlink:
    """A request socket in one namespace."""

    def __init__(self, ns: NetNs) -> None:
        self._name = ns.name
        self._socket = ns.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_EXT_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_GET_STRICT_CHK, 1)
        self._socket.bind((0, 0))
        self._sequence = 0

    def run(self, requests: Sequence[bytes]) -> None:
        """Execute ``requests`` in order, in as few sends as possible.

        A failure does not stop the rest of its chunk; NetlinkError reports the first one.
        """
        chunk: list[bytes] = []
        size = 0
        for request in requests:
            if size + len(request) > _CHUNK and chunk:
                self._run_chunk(chunk)
                chunk, size = [], 0
            chunk.append(request)
            size += len(request)
        if chunk:
            self._run_chunk(chunk)

    def _run_chunk(self, chunk: Sequence[bytes]) -> None:
        first = self._sequence + 1
        numbered: list[bytes] = []
        for request in chunk:
            self._sequence += 1
            # Only the last requests an acknowledgement; refusals are sent anyway.
            flags = nlmsg.flags_of(request) | (rtnl.NLM_F_ACK if len(numbered) == len(chunk) - 1 else 0)
            numbered.append(nlmsg.renumber(request, flags, self._sequence))
        self._socket.send(b"".join(numbered))
        failure: NetlinkError | None = None
        while True:
            for kind, sequence, flags, body in self._messages():
                if kind != rtnl.NLMSG_ERROR or sequence < first:
                    continue
                errno = -struct.unpack_from("=i", body)[0]
                if errno and failure is None:
                    request = chunk[sequence - first]
                    failure = self._error(errno, request, nlmsg.extended_ack(body, flags))
                if sequence == self._sequence:
                    if failure is not None:
                        raise failure
                    return

    def links(self) -> list[LinkEvent]:
        """Return every interface of the namespace."""
        return [e for e in self._dump(rtnl.dump_request(rtnl.RTM_GETLINK)) if isinstance(e, LinkEvent)]

    def peers(self) -> dict[int, tuple[int, int | None]]:
        """Return the peers of the namespace's interfaces, as of veths: index, and the id of the peer's namespace."""
        found: dict[int, tuple[int, int | None]] = {}
        for _, kind, body in self._answers(rtnl.dump_request(rtnl.RTM_GETLINK)):
            joined = rtnl_events.parse_peer(body) if kind == rtnl.RTM_NEWLINK else None
            if joined is not None:
                found[joined[0]] = joined[1:]
        return found

    def neighbours(self) -> list[NeighbourEvent]:
        """Return every IPv4 neighbour entry of the namespace."""
        return [e for e in self._dump(rtnl.dump_request(rtnl.RTM_GETNEIGH)) if isinstance(e, NeighbourEvent)]

    def routes(self) -> list[RouteEvent]:
        """Return every IPv4 route of the namespace, all tables."""
        return [e for e in self._dump(rtnl.dump_request(rtnl.RTM_GETROUTE)) if isinstance(e, RouteEvent)]

    def routes6(self) -> list[seg6.Route6]:
        """Return every IPv6 route of the namespace with one next hop, all tables."""
        answers = self._answers(seg6.dump_routes6())
        found = (seg6.parse_route6(body) for _, kind, body in answers if kind == rtnl.RTM_NEWROUTE)
        return [route for route in found if route is not None]

    def neighbours6(self) -> dict[tuple[int, str], str]:
        """Return the MAC of every permanent IPv6 neighbour, by interface and address."""
        answers = self._answers(seg6.dump_neighbours6())
        found = (seg6.parse_neighbour6(body) for _, kind, body in answers if kind == rtnl.RTM_NEWNEIGH)
        return {each[:2]: each[2] for each in found if each is not None}

    def buckets(self, ifindexes: Container[int]) -> list[BucketReading]:
        """Read the token buckets of those interfaces: their queues, and their counters and those of RED inside."""
        found: list[BucketReading] = []
        marked: dict[int, int] = {}
        classes: dict[int, tuple[ClassCounters, ...]] = {}
        for at, kind, body in self._answers(rtnl.dump_request(rtnl.RTM_GETQDISC)):
            if kind != rtnl.RTM_NEWQDISC:
                continue
            reading = parse_bucket(at, body, ifindexes)
            if reading is not None:
                found.append(reading)
                continue
            ifindex, _, inner = parse_kind(body)
            if inner in _MARKING:  # the sum, if two queues share the bucket
                marked[ifindex] = marked.get(ifindex, 0) + _MARKING[inner](body)
            if inner == mmu.KIND:
                classes[ifindex] = mmu.parse_counters(body)
        if not marked:
            return found
        return [
            replace(reading, marked=marked.get(reading.ifindex), classes=classes.get(reading.ifindex, ()))
            for reading in found
        ]

    def queues(self) -> Queues:
        """Return every token bucket, the interfaces with netem, HTB or two classes, and the marks of RED at each."""
        answers = self._answers(rtnl.dump_request(rtnl.RTM_GETQDISC))
        found = [(at, body, *parse_kind(body)) for at, kind, body in answers if kind == rtnl.RTM_NEWQDISC]
        everywhere = {ifindex for _, _, ifindex, _, _ in found}
        readings = (parse_bucket(at, body, everywhere) for at, body, *_ in found)
        delayed = frozenset(ifindex for _, _, ifindex, _, kind in found if kind == "netem")
        controlled = frozenset(ifindex for _, _, ifindex, _, kind in found if kind == "htb")
        divided = frozenset(ifindex for _, _, ifindex, parent, _ in found if parent == SECOND_CLASS)
        marked: Counter[int] = Counter()
        for _, body, ifindex, _, kind in found:
            if kind in _MARKING:
                marked[ifindex] += _MARKING[kind](body)
        buckets = tuple(reading for reading in readings if reading is not None)
        classes = {ifindex: mmu.parse_counters(body) for _, body, ifindex, _, kind in found if kind == mmu.KIND}
        stuck = frozenset(number for _, body, number, _, kind in found if kind == mmu.KIND and mmu.parse_stuck(body))
        return Queues(buckets, delayed, marked, controlled, divided, classes, stuck)

    def route_get(
        self, dst: str, *, src: str | None = None, iif: int = 0, sport: int = 0, dport: int = 0, proto: int = 17
    ) -> Hop:
        """Return the exact next hop that a packet with these fields would take here (FACTS trap 1).

        NetlinkError (EHOSTUNREACH, ENETUNREACH, EINVAL for blackhole) when it would be dropped.
        """
        request = rtnl.route_get(dst, src, iif, sport, dport, proto)
        self._sequence += 1
        self._socket.send(nlmsg.renumber(request, rtnl.NLM_F_REQUEST, self._sequence))
        for kind, _, flags, body in self._messages():
            if kind == rtnl.NLMSG_ERROR:
                raise self._error(-struct.unpack_from("=i", body)[0], request, nlmsg.extended_ack(body, flags))
            if kind == rtnl.RTM_NEWROUTE:
                return Hop(*rtnl_events.parse_hop(body))
        raise NetlinkError(0, f"{self._name}: no answer to a route look-up")

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _dump(self, request: bytes) -> Iterator[LinkEvent | NeighbourEvent | RouteEvent]:
        for at, kind, body in self._answers(request):
            event = rtnl_events.parse_event(at, kind, body)
            if event is not None:
                yield event

    def _answers(self, request: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield for each message of a dump the time it was read, its type and its body."""
        self._sequence += 1
        self._socket.send(nlmsg.renumber(request, rtnl.NLM_F_REQUEST | rtnl.NLM_F_DUMP, self._sequence))
        while True:
            at = now_ns()
            for kind, sequence, _, body in self._messages():
                if sequence != self._sequence:
                    continue
                if kind == rtnl.NLMSG_DONE:
                    return
                if kind == rtnl.NLMSG_ERROR:
                    raise self._error(-struct.unpack_from("=i", body)[0], request, "")
                yield at, kind, body

    def _messages(self) -> list[tuple[int, int, int, bytes]]:
        return list(nlmsg.split(self._socket.recv(_RECEIVE)))

    def _error(self, errno: int, request: bytes, words: str) -> NetlinkError:
        text = words or os.strerror(errno)
        return NetlinkError(errno, f"{self._name}: {rtnl.describe(request)}: {text}")


def refusal(space: NetNs, requests: Sequence[bytes]) -> str | None:
    """Return why a namespace's kernel refuses requests, None if it carries them out."""
    link = Netlink(space)
    try:
        link.run(requests)
    except OSError as error:
        return str(error.strerror or error)
    finally:
        link.close()
    return None


class Monitor:
    """A multicast listener in one namespace; add ``fileno()`` to an event loop and call ``read`` when readable."""

    def __init__(self, ns: NetNs, *, link: bool = False, neighbour: bool = False, route: bool = False) -> None:
        self._socket = ns.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE
        )
        enlarge_receive(self._socket, 1 << 22)
        self._socket.bind((0, 0))
        wanted = ((_GROUP_LINK, link), (_GROUP_NEIGHBOUR, neighbour), (_GROUP_IPV4_ROUTE, route))
        for group, wants in wanted:
            if wants:
                self._socket.setsockopt(_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP, group)

    def fileno(self) -> int:
        """Return the descriptor to watch."""
        return self._socket.fileno()

    def read(self) -> list[LinkEvent | NeighbourEvent | RouteEvent]:
        """Read waiting messages, stamped on receipt, up to the limit of one call. Empty if there are none.

        OverrunError when the kernel had to drop messages. Those still waiting are older than the dropped ones, so they
        are discarded too. The state that is read again after a loss is newer than all of them. Delivered afterwards, an
        old carrier or neighbour state would pass for the latest.
        """
        events: list[LinkEvent | NeighbourEvent | RouteEvent] = []
        for _ in range(_READ_AT_ONCE):
            try:
                data = self._socket.recv(_RECEIVE)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    self._discard()
                    raise OverrunError from error
                raise
            at = now_ns()
            for kind, _, _, body in nlmsg.split(data):
                event = rtnl_events.parse_event(at, kind, body)
                if event is not None:
                    events.append(event)
        return events

    def _discard(self) -> None:
        """Read until nothing waits, however often the kernel drops more meanwhile."""
        while True:
            try:
                self._socket.recv(_RECEIVE)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
