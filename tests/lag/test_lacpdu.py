"""The codec, judged by scapy, by tshark and by noise."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.lag.lacpdu import LACPDU_SIZE, SLOW_PROTOCOLS_MAC, Lacpdu, PortInfo, PortState, decode, encode

U16 = st.integers(0, 0xFFFF)
INFO = st.builds(
    PortInfo,
    system_priority=U16,
    system=st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":")),
    key=U16,
    port_priority=U16,
    port=U16,
    state=st.integers(0, 255).map(PortState),
)
PDU = st.builds(Lacpdu, actor=INFO, partner=INFO, collector_max_delay=U16)
SAMPLE = Lacpdu(
    PortInfo(32768, "00:00:5e:00:01:01", 7, 255, 301, PortState(0x3D)),
    PortInfo(65535, "02:00:00:00:00:0a", 9, 128, 2, PortState(0x0F)),
    5,
)


@given(PDU)
def test_what_is_encoded_decodes_to_the_same(pdu: Lacpdu) -> None:
    wire = encode(pdu)
    assert len(wire) == LACPDU_SIZE
    assert decode(wire) == pdu
    assert decode(wire + bytes(18)) == pdu  # padded by a link


@given(st.binary(max_size=140))
def test_noise_is_refused_without_a_crash(payload: bytes) -> None:
    assert decode(payload) is None or payload[0] == 1


@given(PDU, st.integers(0, LACPDU_SIZE - 1), st.integers(0, 255))
def test_one_wrong_octet_never_crashes_and_a_wrong_length_is_refused(pdu: Lacpdu, at: int, octet: int) -> None:
    wire = bytearray(encode(pdu))
    changed = octet != wire[at]
    wire[at] = octet
    decoded = decode(bytes(wire))
    if changed and at in (0, 3, 23, 43, 59):  # subtype and the four lengths; 59 is the Terminator's
        assert decoded is None


@given(PDU, st.integers(0, LACPDU_SIZE - 1))
def test_a_pdu_cut_short_is_refused(pdu: Lacpdu, size: int) -> None:
    assert decode(encode(pdu)[:size]) is None


def version_2(pdu: Lacpdu) -> bytes:
    """The LACPDU of a System that does per-service frame distribution (802.1AX-2014, 6.4.2.4)."""
    up_to_collector = bytearray(encode(pdu)[:58])
    up_to_collector[1] = 2
    algorithm = bytes((4, 6)) + bytes.fromhex("0080c201")
    digest = bytes((5, 20)) + bytes(range(18))
    return bytes(up_to_collector) + algorithm + digest + bytes(2) + bytes(24)


@given(PDU)
def test_a_version_2_pdu_with_further_tlvs_is_read_by_what_version_1_has(pdu: Lacpdu) -> None:
    assert decode(version_2(pdu)) == pdu


def test_a_later_version_without_further_tlvs_is_read_too() -> None:
    wire = bytearray(encode(SAMPLE))
    wire[1] = 3
    assert decode(bytes(wire)) == SAMPLE


def test_tshark_and_we_read_the_same_in_a_version_2_pdu(tmp_path: Path) -> None:
    found = _tshark(tmp_path, version_2(SAMPLE))
    assert found["lacp.version"] == "0x02"
    assert int(found["lacp.partner.port"]) == SAMPLE.partner.port
    assert int(found["lacp.actor.state"], 16) == SAMPLE.actor.state
    assert int(found["lacp.collector.max_delay"]) == SAMPLE.collector_max_delay


def test_scapy_builds_the_same_octets() -> None:
    from scapy.contrib.lacp import LACP
    from scapy.contrib.slowprot import SlowProtocol

    actor, partner = SAMPLE.actor, SAMPLE.partner
    theirs = SlowProtocol() / LACP(
        actor_system_priority=actor.system_priority,
        actor_system=actor.system,
        actor_key=actor.key,
        actor_port_priority=actor.port_priority,
        actor_port_number=actor.port,
        actor_state=int(actor.state),
        partner_system_priority=partner.system_priority,
        partner_system=partner.system,
        partner_key=partner.key,
        partner_port_priority=partner.port_priority,
        partner_port_number=partner.port,
        partner_state=int(partner.state),
        collector_max_delay=SAMPLE.collector_max_delay,
    )
    assert bytes(theirs) == encode(SAMPLE)
    assert decode(bytes(theirs)) == SAMPLE


def _tshark(tmp_path: Path, payload: bytes) -> dict[str, str]:
    """What tshark reads in a LACPDU."""
    if shutil.which("tshark") is None:
        pytest.skip("no tshark: apt install tshark")
    from scapy.layers.l2 import Ether
    from scapy.utils import wrpcap

    capture = tmp_path / "lacp.pcap"
    header = Ether(dst=SLOW_PROTOCOLS_MAC, src="02:00:00:00:00:01", type=0x8809)
    wrpcap(str(capture), [header / payload])
    text = subprocess.run(["tshark", "-r", str(capture), "-T", "json"], capture_output=True, check=True, text=True)
    layers = json.loads(text.stdout)[0]["_source"]["layers"]
    assert "_ws.malformed" not in layers
    found: dict[str, str] = layers["lacp"]
    return found


def test_tshark_reads_every_field(tmp_path: Path) -> None:
    lacp = _tshark(tmp_path, encode(SAMPLE))
    for side, info in (("actor", SAMPLE.actor), ("partner", SAMPLE.partner)):
        assert int(lacp[f"lacp.{side}.sys_priority"]) == info.system_priority
        assert lacp[f"lacp.{side}.sysid"] == info.system
        assert int(lacp[f"lacp.{side}.key"]) == info.key
        assert int(lacp[f"lacp.{side}.port_priority"]) == info.port_priority
        assert int(lacp[f"lacp.{side}.port"]) == info.port
        assert int(lacp[f"lacp.{side}.state"], 16) == info.state
    assert int(lacp["lacp.collector.max_delay"]) == SAMPLE.collector_max_delay
