"""LLDP data units, judged by scapy, by tshark and by noise."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.contrib.lldp import (
    LLDPDUChassisID,
    LLDPDUEndOfLLDPDU,
    LLDPDUPortID,
    LLDPDUTimeToLive,
)
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from hpn.testbed.kernel.packets.lldp import ETHERTYPE_LLDP, NEAREST_BRIDGE, Neighbour, decode, encode

PORT = Neighbour("p0.s0.t0.0", "h0r0", 120)


def _frame(payload: bytes) -> Ether:
    return Ether(Ether(dst=NEAREST_BRIDGE, src="02:00:00:00:00:01", type=ETHERTYPE_LLDP).build() + payload)


@given(
    st.text("abcdefghijklmnop.0123456789", min_size=1, max_size=40), st.text("rph0123456789", min_size=1, max_size=15)
)
def test_a_port_is_read_as_it_was_written(node: str, port: str) -> None:
    assert decode(encode(Neighbour(node, port, 120))) == Neighbour(node, port, 120)


def test_scapy_reads_ours_and_we_read_scapys() -> None:
    frame = _frame(encode(PORT))
    assert frame[LLDPDUChassisID].id == b"p0.s0.t0.0"
    assert frame[LLDPDUPortID].id == b"h0r0"
    assert frame[LLDPDUTimeToLive].ttl == PORT.ttl_s
    theirs = (
        Ether(dst=NEAREST_BRIDGE, src="02:00:00:00:00:01", type=ETHERTYPE_LLDP)
        / LLDPDUChassisID(subtype=LLDPDUChassisID.SUBTYPE_LOCALLY_ASSIGNED, id=b"switch")
        / LLDPDUPortID(subtype=LLDPDUPortID.SUBTYPE_INTERFACE_NAME, id=b"Ethernet4")
        / LLDPDUTimeToLive(ttl=121)
        / LLDPDUEndOfLLDPDU()
    )
    assert decode(bytes(theirs)[14:]) == Neighbour("switch", "Ethernet4", 121)


def test_tshark_reads_every_unit_and_finds_none_malformed(tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("no tshark: apt install tshark")
    capture = tmp_path / "lldp.pcap"
    wrpcap(str(capture), [_frame(encode(PORT))])
    fields = ["lldp.chassis.id", "lldp.port.id", "lldp.time_to_live", "lldp.tlv.system.name", "_ws.malformed"]
    command = ["tshark", "-r", str(capture), "-T", "fields", *(part for field in fields for part in ("-e", field))]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout.rstrip("\n").split("\t")
    assert bytes.fromhex(said[0]) == b"p0.s0.t0.0", "an ID of this subtype is any octets to tshark"
    assert said[1:] == ["h0r0", "120", "p0.s0.t0.0", ""]


@given(st.binary(max_size=64))
def test_noise_is_refused_or_read_but_never_an_error(payload: bytes) -> None:
    found = decode(payload)
    assert found is None or (found.node and found.port)


@pytest.mark.parametrize("cut", range(24))
def test_a_unit_that_is_cut_off_is_refused(cut: int) -> None:
    """Chassis ID, port ID and TTL take 2 + 11, 2 + 5 and 2 + 2 bytes."""
    assert decode(encode(PORT)[:cut]) is None
    assert decode(encode(PORT)[:24]) == PORT
