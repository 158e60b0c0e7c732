"""A device of the kernel's Soft-RoCE and the program that holds its queue pair, a link away; for a guest, as root.

ours [10.9.0.1, a namespace] --veth-- [10.9.0.2, the guest's own namespace] rxe
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.traffic.flows.flow import ROCE_PORT
from hpn.traffic.streams import wire

OUR_IP, PEER_IP = "10.9.0.1", "10.9.0.2"
OUR_PORT, PEER_PORT = "judgea", "judgeb"
QPN = 0x4A31
"""Of our queue pair."""

PYTHON = "/usr/bin/python3"
"""Debian's, which python3-pyverbs is for."""

DEVICES = Path("/sys/class/infiniband")
_DEVICE = "judge0"
_COUNTERS = DEVICES / _DEVICE / "ports/1/hw_counters"
_COUNTERS_LIVE_S = 0.05  # they are read from the device anew when what was read before is older than 10 ms
_PEER = Path(__file__).with_name("rxe_peer.py")


class Peer:
    """The program that holds rxe's queue pair."""

    def __init__(self) -> None:
        command = (PYTHON, str(_PEER), _DEVICE, PEER_IP)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address, self.rkey = self._numbers("memory")

    def create(self) -> int:
        """Another queue pair; its number."""
        (qpn,) = self._numbers("create")
        return qpn

    def connect(self, first_psn: int, path_mtu: int, timeout: int = 14, retries: int = 7) -> None:
        """Connect its queue pair to ours; both ends begin with the same PSN."""
        self._ask("connect", OUR_IP, QPN, first_psn, first_psn, path_mtu, timeout, retries)

    def receive(self, count: int) -> None:
        """Be ready for that many messages."""
        self._ask("receive", count)

    def write(self, number: int, offset: int, size: int, address: int, immediate: int) -> None:
        """Send so much of its memory to an address of ours."""
        self._ask("write", number, offset, size, address, 1, immediate)

    def completions(self, at_least: int, within_ms: int = 0) -> list[list[int]]:
        """Id, status, opcode, bytes and immediate of what has come to an end."""
        found = self._ask("completions", at_least, within_ms)
        assert isinstance(found, list)
        return found

    def dump(self, offset: int, size: int) -> bytes:
        """What its memory has."""
        return bytes.fromhex(str(self._ask("dump", offset, size)))

    def fill(self, offset: int, content: bytes) -> None:
        """Put something into its memory."""
        self._ask("fill", offset, content.hex())

    def counters(self) -> dict[str, int]:
        """What the device has counted so far."""
        time.sleep(_COUNTERS_LIVE_S)
        return {path.name: int(path.read_text()) for path in _COUNTERS.iterdir()}

    def close(self) -> None:
        """End it."""
        self._process.communicate()

    def _numbers(self, verb: str) -> list[int]:
        found = self._ask(verb)
        return found if isinstance(found, list) else [int(str(found))]

    def _ask(self, verb: str, *arguments: int | str) -> object:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([verb, arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the peer ended at {verb}{arguments}"
        found: object = json.loads(answer)
        return found


@contextmanager
def joined() -> Iterator[ns.NetNs]:
    """The link, and the device at its far end; our namespace."""
    ours = ns.create("ours")
    try:
        there = f"/proc/{os.getpid()}/fd/{ours.fd}"
        _ip(f"link add {PEER_PORT} mtu 4200 type veth peer name {OUR_PORT} mtu 4200 netns {there}")
        _ip(f"addr add {PEER_IP}/24 dev {PEER_PORT}")
        _ip(f"link set {PEER_PORT} up")
        with ours.entered():
            _ip("link set lo up")
            _ip(f"addr add {OUR_IP}/24 dev {OUR_PORT}")
            _ip(f"link set {OUR_PORT} up")
        _run("rdma", "link", "add", _DEVICE, "type", "rxe", "netdev", PEER_PORT)
        yield ours
    finally:
        subprocess.run(("rdma", "link", "delete", _DEVICE), check=False, capture_output=True)
        subprocess.run(("ip", "link", "delete", PEER_PORT), check=False, capture_output=True)
        os.close(ours.fd)


def _ip(arguments: str) -> None:
    _run("ip", *arguments.split())


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


@contextmanager
def dropping(namespace: ns.NetNs, port: str, match: str) -> Iterator[None]:
    """Drop the first packet that arrives at ``port`` and matches."""
    nft = Nft(namespace)
    rule = f"udp dport {ROCE_PORT} {match} limit rate 1/day burst 1 packets counter drop"
    hook = f"type filter hook ingress device {port} priority 0"
    nft.run(f"table netdev judge {{ chain way {{ {hook}; {rule}; }}; }}")
    try:
        yield
        listed = nft.run("list table netdev judge")
        assert "counter packets 1 " in listed, listed
    finally:
        nft.run("delete table netdev judge")
        nft.close()


def psn_is(psn: int) -> str:
    """A match for ``dropping``: PSN, which is bytes 9 to 11 behind the UDP header."""
    return f"@th,136,24 {psn & wire.PSN_MASK}"
