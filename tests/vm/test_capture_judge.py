"""Captures judge what drills say: dumpcap on every LAG of a lab in virtual time, counted by a reader of its own.

host [bond0]--ToRs--Aggs--ToRs--[bond0] host        sent, received, lost and when, per queue pair, seen at both LAGs
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from hpn.results.run import folder
from hpn.results.run.folder import RunFolder
from hpn.scenarios.drill.catalogue import LIBRARY
from hpn.scenarios.run.stored_records import kept
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml
from hpn.traffic.streams.columns import whole
from tests.vm.pcap import Seen, Stream, data_packets

pytestmark = [pytest.mark.guest, pytest.mark.timeout(420)]

_ROOT = Path(__file__).parents[2]
_DRILLS = ("link-down", "silent-drop")
_STAMP_NS = 20_000  # one clock read after the other costs 256 ns there; a shift of 1 ms is 50 times as much


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both drills at a tenth of their rates, in one guest: run folders and captures."""
    if shutil.which("dumpcap") is None or shutil.which("nsenter") is None:
        pytest.skip("dumpcap (tshark) or nsenter is missing")
    engine = Uml(virtual_time=True)
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    place = tmp_path_factory.mktemp("captured")
    drills = []
    for name in _DRILLS:
        text = (LIBRARY / f"{name}.yaml").read_text()
        assert "\ntopology: tiny\n" in text
        drills.append(place / f"{name}.yaml")
        drills[-1].write_text(text.replace("\ntopology: tiny\n", "\ntopology: {preset: tiny, scale: 10000}\n"))
    command = (sys.executable, "-B", str(_ROOT / "tests" / "vm" / "captured.py"), str(place), *map(str, drills))
    job = GuestJob(command, place, (place,), {"HPN_STATE_DIR": "/run/hpn-state"}, 1536, 1, 400.0)
    said: list[str] = []
    result = engine.run(job, said.append)
    assert result.exit_code == 0, "\n".join(said) + "".join(path.read_text() for path in place.glob("*/*.txt"))
    return place


@dataclass(frozen=True)
class _Judged:
    """One flow as the captures have it: at the LAG of its sender and at that of its receiver."""

    name: str
    flow: int
    sent: Seen
    arrived: Seen


def _judged(out: Path, name: str) -> tuple[RunFolder, list[_Judged]]:
    run = folder.load(out / name)
    specs = json.loads((run.path / "records" / "facts.json").read_text())["facts"]["flows"]
    seen = data_packets(sorted((out / f"{name}.captures").glob("*.pcap")))
    lags = {place for place, _ in seen}
    assert len(lags) == len({spec["src_nic"] for spec in specs}) == 8, f"captured at {sorted(lags)}"
    judged = []
    for spec in specs:
        stream = Stream(spec["src_ip"], spec["dst_ip"], 0x12 + 2 * spec["id"] + 1)  # pairs of numbers, the responder's
        here, there = (seen[(nic.replace(".r", ".bond"), stream)] for nic in (spec["src_nic"], spec["dst_nic"]))
        judged.append(_Judged(spec["name"], spec["id"], here, there))
    return run, judged


@pytest.mark.parametrize("name", _DRILLS)
def test_every_flow_sent_received_and_lost_what_the_captures_say(out: Path, name: str) -> None:
    run, judged = _judged(out, name)
    results = {flow.flow: flow for flow in run.metrics().flows}
    assert len(judged) == len(results) == 32
    captured = {each.name: (len(each.sent.at_ns), len(each.arrived.at_ns), _lost(each)) for each in judged}
    said = {flow.name: (flow.sent, flow.received, flow.lost) for flow in results.values()}
    assert captured == said
    assert all(min(each.sent.at_ns) == 0 for each in judged), "the captures began before the traffic"
    assert not any(each.sent.copies or each.arrived.copies for each in judged)
    if name == "silent-drop":
        assert sum(flow.lost for flow in results.values()) > 100, "there was something to see"


def _lost(each: _Judged) -> int:
    return len(each.sent.at_ns.keys() - each.arrived.at_ns.keys())


@pytest.mark.parametrize("name", _DRILLS)
def test_the_longest_outage_is_what_the_captures_say(out: Path, name: str) -> None:
    """By the longest run of packets that were captured where they left and not where they should have arrived."""
    run, judged = _judged(out, name)
    results = {flow.flow: flow for flow in run.metrics().flows}
    for each in judged:
        missing = sorted(each.sent.at_ns.keys() - each.arrived.at_ns.keys())
        holes = np.split(np.array(missing), np.flatnonzero(np.diff(missing) > 1) + 1) if missing else []
        longest_ms = max((len(hole) * 1e3 / results[each.flow].rate_pps for hole in holes), default=0.0)
        said_ms = max((outage.plbm_ms for outage in results[each.flow].longest_outages), default=0.0)
        assert longest_ms == pytest.approx(said_ms), each.name


@pytest.mark.parametrize("name", _DRILLS)
def test_stamps_are_those_of_the_captures(out: Path, name: str) -> None:
    """The receive stamp is the time of capture at the receiver's LAG, the send stamp just before the sender's."""
    run, judged = _judged(out, name)
    manifest, measured = run.manifest(), kept(run).measured
    wall_ns = round(datetime.fromisoformat(manifest.started_at).timestamp() * 1e6) * 1000 - manifest.started_ns
    arrived = whole(measured.received)
    for each in judged:
        received = arrived[arrived["flow"] == each.flow]
        late_ns = [
            int(at) + wall_ns - each.arrived.at_ns[int(seq)]
            for seq, at in zip(received["seq"], received["received_ns"], strict=True)
        ]
        assert max(map(abs, late_ns)) < _STAMP_NS, (
            f"{each.name}: receive stamps {min(late_ns)} to {max(late_ns)} ns off"
        )
        early_ns = [
            each.sent.at_ns[int(seq)] - int(at) - wall_ns
            for seq, at in zip(received["seq"], received["sent_ns"], strict=True)
        ]
        assert min(early_ns) > -_STAMP_NS, f"{each.name} left before it was stamped"
        assert max(early_ns) < 1_000_000, f"{each.name} left {max(early_ns)} ns after it was stamped"
