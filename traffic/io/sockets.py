"""Sockets of the engines: UDP receivers per NIC, UDP senders per queue pair, raw senders for any."""

from __future__ import annotations

import os
import socket
import struct

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.buffers import enlarge_receive, enlarge_send
from hpn.testbed.kernel.process import open_files
from hpn.traffic.flows.flow import ROCE_PORT
from hpn.traffic.flows.ip_layer import IPV4, IPV6, IpLayer, layer_of

_SO_TIMESTAMPNS = 35
_SO_MEMINFO, _SK_MEMINFO_DROPS, _SK_MEMINFO_VARS = 55, 8, 9
_IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE, _IP_RECVTOS, _IPV6_RECVTCLASS = 10, 3, 13, 66
_SOL_UDP, _UDP_NO_CHECK6_RX, _UDP_SEGMENT = 17, 102, 103

MAX_BURST_BYTES = 65_507
MAX_BURST_PACKETS = 64  # UDP_MAX_SEGMENTS before Linux 6.8
_BUFFER_BYTES = 64 << 20


def open_receiver(ns: NetNs, ip: str, *, tos: bool = False) -> socket.socket:
    """Open the socket that receives everything sent to the RoCE port of ``ip``, with kernel receive stamps. OSError.

    With ``tos`` it reports each packet's TOS byte (traffic class) instead, so that congestion marks are visible.
    """
    layer = layer_of(ip)
    sock = _open(ns, layer)
    of_ip = (socket.IPPROTO_IP, _IP_RECVTOS) if layer is IPV4 else (socket.IPPROTO_IPV6, _IPV6_RECVTCLASS)
    sock.setsockopt(*(of_ip if tos else (socket.SOL_SOCKET, _SO_TIMESTAMPNS)), 1)
    if layer is IPV6:
        sock.setsockopt(_SOL_UDP, _UDP_NO_CHECK6_RX, 1)  # RoCEv2 has no UDP checksum
    enlarge_receive(sock, _BUFFER_BYTES)
    return _bind(sock, ns, ip, ROCE_PORT)


def open_sender(ns: NetNs, ip: str, sport: int, segment_bytes: int = 0) -> socket.socket:
    """Open a socket that sends from ``ip``:``sport``, unconnected so that the kernel writes IP id 0 and DF. OSError.

    As an adapter does, it ignores ICMP that asks for smaller packets.

    With ``segment_bytes`` a larger buffer leaves in segments of that size (UDP_SEGMENT); IP ids count up from 0.
    Unconnected also keeps the socket's own hash out of ECMP decisions (FACTS trap 1).
    """
    sock = _open(ns, IPV4)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # queue pairs may share a source port, as in RoCE
    sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE)
    enlarge_send(sock, _BUFFER_BYTES)
    if segment_bytes:
        sock.setsockopt(_SOL_UDP, _UDP_SEGMENT, segment_bytes)
    return _bind(sock, ns, ip, sport)


def open_raw_sender(ns: NetNs, mark: int = 0, layer: IpLayer = IPV4) -> socket.socket:
    """Open a socket that sends complete IP packets from any address and port of a NIC (IP_HDRINCL); it receives
    nothing. Routing rules see the ``mark`` of its packets.

    The kernel fills in length and checksum of an IPv4 header, and an id of 0 stays 0 with DF (raw(7)). OSError.
    """
    sock = ns.socket(layer.FAMILY, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, socket.IPPROTO_RAW)
    enlarge_send(sock, _BUFFER_BYTES)
    if mark:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
    return sock


def drops(sock: socket.socket) -> int:
    """Return the datagrams that the kernel dropped because the socket was not read in time: losses caused by the
    machine."""
    raw = sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 4 * _SK_MEMINFO_VARS)
    return int(struct.unpack(f"{_SK_MEMINFO_VARS}I", raw)[_SK_MEMINFO_DROPS])


def buffer_bytes(sock: socket.socket) -> int:
    """Return the receive buffer that was granted."""
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def _open(ns: NetNs, layer: IpLayer) -> socket.socket:
    return ns.socket(layer.FAMILY, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)


def _bind(sock: socket.socket, ns: NetNs, ip: str, port: int) -> socket.socket:
    try:
        sock.bind((ip, port))
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"{ns.name}: cannot use {ip}:{port}: {error.strerror}") from error
    return sock


def raise_file_limit(descriptors: int) -> None:
    """Raise the limit for ``descriptors`` more open files. MachineError when the hard limit is lower."""
    wanted = descriptors + len(os.listdir("/proc/self/fd")) + 16
    limit = open_files.allow(wanted)
    if limit is not None:
        raise MachineError(
            f"a traffic worker needs {wanted} open files and {limit} are allowed:"
            f" use fewer queue pairs, or ulimit -Hn {wanted}"
        )
