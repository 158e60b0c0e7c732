"""RDMA netlink: adding and deleting software RDMA devices, and the counters of their ports.

A device is added on an interface of the socket's namespace and exists as long as that interface.
Layouts: rdma/rdma_netlink.h; behaviour: drivers/infiniband/core/nldev.c.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Mapping

from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import NetlinkError
from hpn.testbed.kernel.rtnetlink.nlmsg import attributes, extended_ack, split
from hpn.testbed.kernel.rtnetlink.rtnl import NLM_F_ACK, NLM_F_DUMP, NLMSG_DONE, NLMSG_ERROR

ROCE_PORT = 4791
"""UDP port of RoCEv2 (InfiniBand architecture, annex A17), at which Soft-RoCE listens."""

_NETLINK_RDMA = 20
_SOL_NETLINK, _NETLINK_EXT_ACK = 270, 11
_NLDEV = 5 << 10  # RDMA_NL_NLDEV, as RDMA_NL_GET_TYPE places it
_GET, _NEWLINK, _DELLINK, _STAT_GET = (_NLDEV + command for command in (1, 3, 4, 17))
_INDEX, _NAME, _PORT, _NDEV_NAME, _LINK_TYPE = 1, 2, 3, 51, 65  # RDMA_NLDEV_ATTR_*
_COUNTERS, _COUNTER_NAME, _COUNTER_VALUE = 80, 82, 83  # RDMA_NLDEV_ATTR_STAT_HWCOUNTER*
_ATTR = struct.Struct("=HH")
_RECEIVE = 1 << 18
_ONLY_PORT = 1


def new_link(name: str, kind: str, interface: str) -> bytes:
    """Return a request to add an RDMA device of a kind ('rxe') on an interface of the socket's namespace."""
    body = _text(_NAME, name) + _text(_LINK_TYPE, kind) + _text(_NDEV_NAME, interface)
    return rtnl.message(_NEWLINK, NLM_F_ACK, body)


def delete_link(index: int) -> bytes:
    """Return a request to delete a software RDMA device."""
    return rtnl.message(_DELLINK, NLM_F_ACK, _u32(_INDEX, index))


def counters_request(index: int) -> bytes:
    """Return a request for the counters of a device's port (its hw_counters)."""
    return rtnl.message(_STAT_GET, NLM_F_ACK, _u32(_INDEX, index) + _u32(_PORT, _ONLY_PORT))


def parse_device(body: bytes) -> tuple[str, int]:
    """Return name and index of the device in an answer."""
    found = attributes(body)
    return _string(found[_NAME]), int.from_bytes(found[_INDEX], "little")


def parse_counters(body: bytes) -> dict[str, int]:
    """Return name and value of each counter in an answer, in the driver's order."""
    found: dict[str, int] = {}
    for entry in _each(attributes(body).get(_COUNTERS, b"")):
        told = attributes(entry)
        found[_string(told[_COUNTER_NAME])] = int.from_bytes(told[_COUNTER_VALUE], "little")
    return found


class Rdma:
    """A request socket in one namespace. OSError when this kernel has no RDMA (EPROTONOSUPPORT)."""

    def __init__(self, ns: NetNs) -> None:
        self._name = ns.name
        self._sequence = 0
        self._socket = ns.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_RDMA)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_EXT_ACK, 1)
        self._socket.bind((0, 0))

    def add(self, name: str, kind: str, interface: str) -> None:
        """Add a device. NetlinkError when the kernel refuses."""
        self._ask(new_link(name, kind, interface), f"RDMA device {name} of type {kind} on {interface}")

    def delete(self, index: int) -> None:
        """Delete a device. NetlinkError, ENODEV when there is none."""
        self._ask(delete_link(index), f"removal of RDMA device {index}")

    def devices(self) -> Mapping[str, int]:
        """Return the index by name of every device that this namespace may use: by default those of all namespaces."""
        answers = self._ask(rtnl.message(_GET, NLM_F_DUMP, b""), "look at RDMA devices")
        return dict(parse_device(body) for body in answers)

    def counters(self, index: int) -> Mapping[str, int]:
        """Return the counters of a device's port since its creation. NetlinkError when the device is gone."""
        return parse_counters(self._ask(counters_request(index), f"look at the counters of RDMA device {index}")[0])

    def close(self) -> None:
        """Close the socket; devices stay."""
        self._socket.close()

    def _ask(self, request: bytes, what: str) -> list[bytes]:
        """Send a request and return the bodies of the answers; none if it is only acknowledged."""
        self._sequence += 1
        self._socket.send(request[:8] + struct.pack("=I", self._sequence) + request[12:])
        bodies: list[bytes] = []
        while True:
            for kind, sequence, flags, body in split(self._socket.recv(_RECEIVE)):
                if sequence != self._sequence:
                    continue
                if kind == NLMSG_DONE:
                    return bodies
                if kind != NLMSG_ERROR:
                    bodies.append(body)
                elif refused := -struct.unpack_from("=i", body)[0]:
                    words = extended_ack(body, flags) or os.strerror(refused)
                    raise NetlinkError(refused, f"{self._name}: {what}: {words}")
                else:
                    return bodies


def _u32(kind: int, value: int) -> bytes:
    return rtnl.attribute(kind, struct.pack("=I", value))


def _text(kind: int, value: str) -> bytes:
    return rtnl.attribute(kind, value.encode() + b"\0")


def _string(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")


def _each(data: bytes) -> Iterator[bytes]:
    """Yield the value of each attribute of a list whose attributes all have one type."""
    at = 0
    while at + _ATTR.size <= len(data):
        size, _ = _ATTR.unpack_from(data, at)
        if size < _ATTR.size:
            return
        yield data[at + _ATTR.size : at + size]
        at += size + 3 & ~3
