"""A drill's captures: what passed on a link around its cut and its repair, read by tshark."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.product.hpn import Hpn, skip_without_sandbox

DRILL = """\
drill: captured
summary: one link is cut and repaired, captured around both
topology: tiny
workload: {load: 5 %}
capture: {links: [p0.s0.h0.r0], before: 40 ms, after: 60 ms}
timeline:
  healthy: 500 ms
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 600 ms, for: 1 s}
expect:
  - worst_outage: {below: 10 s, edge: failure}
"""
BEFORE_NS, AFTER_NS, LATE_NS = 40_000_000, 60_000_000, 500_000_000  # a busy machine injects late
FILES = {"inject": "1-cut-failure.pcapng", "restore": "2-cut-repair.pcapng"}


def _seen(file: Path, *filters: str) -> list[tuple[int, str]]:
    """Packets in a file: when, and on which link."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    fields = ["-e", "frame.time_epoch", "-e", "frame.interface_name"]
    command = [tshark, "-r", str(file), "-T", "fields", *fields, *filters]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    pairs = (line.split() for line in lines)
    return [(int(seconds) * 10**9 + int(part), link) for at, link in pairs for seconds, part in [at.split(".")]]


def _host_leaves(event: dict[str, Any], after_ns: int) -> bool:
    """Whether that is the cut NIC's LAG going on over its other port."""
    of_lag = (event["kind"], event["node"], event["subject"]) == ("lag", "p0.s0.h0", "bond0")
    return of_lag and event["at_ns"] > after_ns and event["detail"] == {"ports": "r0p1"}


@pytest.mark.alone
def test_a_cut_link_falls_silent_in_the_capture_and_its_sibling_does_not(tmp_path: Path) -> None:
    skip_without_sandbox()
    (tmp_path / "captured.yaml").write_text(DRILL)
    said = Hpn(tmp_path).run("drill", "run", "captured.yaml", "--out", "out", code=None)
    if "INCONCLUSIVE" in said:  # with a quiet sender there is nothing to capture
        pytest.skip(f"the machine is too busy: {said[said.find('INCONCLUSIVE') :][:400]}")
    folder = tmp_path / "out" / "captured"
    captures = folder / "captures"
    assert sorted(path.name for path in captures.iterdir()) == [*FILES.values(), "captures.json"]
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    edges = {event["what"]: event["at_ns"] for event in events if event["kind"] == "fault"}
    for edge, name in FILES.items():
        file = captures / name
        every = _seen(file)
        assert edges[edge] - LATE_NS < every[0][0] < edges[edge]
        assert edges[edge] < every[-1][0] < edges[edge] + AFTER_NS + LATE_NS
        assert _seen(file, "-Y", "_ws.malformed || _ws.expert.severity >= error") == []
        counts = {link: sum(link == seen for _, seen in every) for link in ("p0.s0.h0.r0.0", "p0.s0.h0.r0.1")}
        told = json.loads((captures / "captures.json").read_text())
        assert counts == {row["link"]: row["packets"] for row in told if row["file"] == name}
    data = _seen(captures / FILES["inject"], "-Y", "infiniband")
    cut = [at_ns for at_ns, link in data if link == "p0.s0.h0.r0.0"]
    sibling = [at_ns for at_ns, link in data if link == "p0.s0.h0.r0.1"]
    # The host sends into the cut link until it hears of it, which takes a busy machine milliseconds.
    left_ns = next(each["at_ns"] for each in events if _host_leaves(each, edges["injected"]))
    assert cut[-1] < left_ns
    assert edges["injected"] < sibling[-1]
    assert len(sibling) > 10
    Hpn(tmp_path).run("export", "out/captured", "--out", "control.pcapng")
    control = tmp_path / "control.pcapng"
    assert _seen(control, "-Y", "_ws.malformed || _ws.expert.severity >= error") == []
    at_faults = _seen(control, "-Y", 'frame.comment contains "link-down of p0.s0.h0.r0.0"')
    assert [abs(at_ns - edges[edge]) < LATE_NS for edge, (at_ns, _) in zip(FILES, at_faults, strict=True)] == [True] * 2
    assert len(_seen(control, "-Y", "infiniband")) <= len(FILES), "data only where a fault is told"
