"""Drill files: what is right becomes a ``Drill``, what is wrong is said all at once with file, line and the way out.

``golden/NAME.yaml`` is a file with mistakes, ``golden/NAME.txt`` what is said about it. After a deliberate change of
words: ``HPN_GOLDEN=write pytest tests/scenarios/test_load.py``, then read the difference.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.failover.faults import (
    FAULTS,
    LinkDown,
    LinkFlap,
    Parameter,
    PlannedFault,
    RateDrop,
    TargetKind,
    TorCrash,
    Unit,
    parameters,
)
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.load import drill_from, load_drill
from hpn.scenarios.drill.model import Drill, Profile
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.expect.outage import WORST_OUTAGE
from hpn.scenarios.expect.selection import At, Bound, Flows
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import parse
from hpn.testbed.files.units import format_duration, format_percent
from hpn.traffic.flows.framing import wire_bytes

GOLDEN = Path(__file__).parent / "golden"
MS = 10**6

GOOD = """
drill: cut
summary: one link is cut
topology: {preset: tiny, path_control: {enabled: false}}
workload: {queue_pairs: 4, load: 20 %, path_mtu: 2048, ib_timeout: 18, retry_count: 3}
profile: full
timeline:
  healthy: 1.5 s
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 2 s, for: 1500 ms}
    - {fault: link-flap, target: p0.s0.h1.r1.1, at: 2 s, period: 400 ms, duty: 25 %, count: 2}
    - {fault: tor-crash, target: p0.s1.t0.0, at: 5 s}
  settle: 6 s
expect:
  - worst_outage: {below: 50 ms, edge: failure, flows: hit, fault: cut}
  - packets_lost: {at_least: 1, at_most: 500}
  - goodput_during: {at_least: 97 %, of: before, flows: others}
  - state_restored: yes
"""


def load(text: str) -> Drill:
    return drill_from(parse(text, "good.yaml"), Path())


def mistakes(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(text)
    return list(caught.value.problems)


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.yaml")))
def test_every_mistake_of_a_file_is_said_at_once_in_the_golden_words(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(InputError) as caught:
        load_drill(f"{name}.yaml")
    said = "".join(f"{problem}\n" for problem in caught.value.problems)
    if os.environ.get("HPN_GOLDEN") == "write":
        (GOLDEN / f"{name}.txt").write_text(said)
    assert said == (GOLDEN / f"{name}.txt").read_text()


def test_a_good_file_becomes_a_drill() -> None:
    drill = load(GOOD)
    assert drill.topology.name == "tiny"
    assert not drill.topology.path_control.enabled
    assert (drill.workload.queue_pairs, drill.workload.load, drill.workload.path_mtu) == (4, 0.2, 2048)
    assert drill.profile is Profile.FULL
    assert drill.timeline.healthy_ns == 1500 * MS
    assert drill.timeline.faults == (
        PlannedFault("cut", LinkDown("p0.s0.h0.r0.0"), 2000 * MS, 1500 * MS),
        PlannedFault("link-flap", LinkFlap("p0.s0.h1.r1.1", 400 * MS, 0.25, 2), 2000 * MS),
        PlannedFault("tor-crash", TorCrash("p0.s1.t0.0"), 5000 * MS),
    )
    assert drill.timeline.end_ns == 11_000 * MS


def test_smaller_packets_are_more_packets_of_the_same_load() -> None:
    whole, small = (
        load(GOOD.replace("path_mtu: 2048", f"path_mtu: 2048{payload}")) for payload in ("", ", payload: 32")
    )
    ((of_whole, *_), (of_small, *_)) = (flows_of(drill.workload, build(drill.topology)) for drill in (whole, small))
    assert (of_whole.path_mtu, of_small.path_mtu) == (2048, 32)
    assert of_small.rate_pps / of_whole.rate_pps == pytest.approx(wire_bytes(2048) / wire_bytes(32))
    with pytest.raises(
        InputError, match=r":\d+: workload.payload 4096 is more than path_mtu 2048; write path_mtu: 4096"
    ):
        load(GOOD.replace("path_mtu: 2048", "path_mtu: 2048, payload: 4096"))


def test_an_expectation_knows_its_limit_its_line_and_its_words() -> None:
    outage, least, most, goodput, restored = load(GOOD).expectations
    assert (outage.metric, outage.bound, outage.limit) == (WORST_OUTAGE, Bound.BELOW, 50 * MS)
    assert (outage.flows, outage.edge, outage.fault, outage.line) == (Flows.HIT, At.FAILURE, "cut", 15)
    assert {(e.bound, e.limit) for e in (least, most)} == {(Bound.AT_LEAST, 1), (Bound.AT_MOST, 500)}
    assert outage.text == "worst outage of hit flows of cut at failure below 50 ms"
    assert goodput.text == "goodput during of other flows at least 97 % of before"
    assert restored.text == "state restored"


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 10**20),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["tiny", "hpn", "p0.s0.h0.r0.0", "p0.s0.t0.0", "link-flap", "1 s", "50 %", "repair", "others", "{}"]
    ),
    st.builds(list),
    st.builds(dict),
    st.builds(lambda: {"a\nb": [1]}),
)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_change_to_a_good_file_raises_anything_but_an_input_error(data: st.DataObject) -> None:
    content = yaml.safe_load(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        spot = content
        while True:
            keys = sorted(spot) if isinstance(spot, dict) else list(range(len(spot)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(spot[key], dict | list) and data.draw(st.booleans()):
                spot = spot[key]
                continue
            action = data.draw(st.sampled_from(["replace", "remove", "add"]))
            if action == "replace":
                spot[key] = data.draw(VALUES)
            elif action == "remove":
                del spot[key]
            elif isinstance(spot, dict):
                spot[data.draw(st.text(max_size=8))] = data.draw(VALUES)
            break
    try:
        load(yaml.safe_dump(content))
        said: tuple[str, ...] = ()
    except InputError as error:
        said = error.problems
    assert all(problem.startswith("good.yaml:") and "\n" not in problem for problem in said)


def test_the_settle_time_is_the_validation_time_and_a_second_more_unless_given() -> None:
    drill = load(GOOD.replace("  settle: 6 s\n", ""))
    assert drill.timeline.settle_ns == 6000 * MS
    assert load(GOOD.replace("full", "quick").replace("  settle: 6 s\n", "")).timeline.settle_ns == 2000 * MS


def test_faults_without_an_id_are_called_by_kind_and_number() -> None:
    text = (
        GOOD.replace("{id: cut, ", "{")
        .replace(", fault: cut}", "}")
        .replace("tor-crash, target: p0.s1.t0.0", "link-down, target: p0.s1.h0.r0.1")
    )
    assert [fault.id for fault in load(text).timeline.faults] == ["link-down-1", "link-flap", "link-down-2"]


def test_a_topology_file_is_looked_for_beside_the_drill(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text("preset: tiny\nrails: 3\n")
    (tmp_path / "drill.yaml").write_text(GOOD.replace("{preset: tiny, path_control: {enabled: false}}", "net.yaml"))
    assert load_drill(tmp_path / "drill.yaml").topology.rails == 3
    (tmp_path / "net.yaml").write_text("preset: tiny\nrails: 0\n")
    with pytest.raises(InputError) as caught:
        load_drill(tmp_path / "drill.yaml")
    (problem,) = caught.value.problems
    net = tmp_path / "net.yaml"
    assert problem == f"{tmp_path}/drill.yaml:4: topology: {net}:2: rails is 0; write a whole number from 1 to 64"


def test_two_faults_may_follow_each_other_on_one_link() -> None:
    second = "    - {id: again, fault: link-down, target: p0.s0.h0.r0.0, at: AT, for: 1 s}\n  settle"
    assert len(load(GOOD.replace("  settle", second.replace("AT", "3600 ms"))).timeline.faults) == 4
    (problem,) = mistakes(GOOD.replace("  settle", second.replace("AT", "3500 ms")))
    assert problem.endswith(
        "overlaps timeline.faults[0] in line 10: both are link-down on p0.s0.h0.r0.0;"
        " start again after 3.5 s or choose another target"
    )


TARGETS = {
    TargetKind.LINK: "p0.s0.h0.r0.0",
    TargetKind.ACCESS_LINK: "p0.s0.h0.r0.0",
    TargetKind.UPLINK: "p0.s0.t0.0-p0.a0.0",
    TargetKind.NIC: "p0.s0.h0.r0",
    TargetKind.NIC_OR_PORT: "p0.s0.h0.r0",
    TargetKind.HOST: "p0.s0.h0",
    TargetKind.TOR: "p0.s0.t0.0",
    TargetKind.AGG: "p0.a0.0",
    TargetKind.CORE: "c0.0",
    TargetKind.PLANE: "plane0",
    TargetKind.AREA: "plane0",
}


def _written(p: Parameter) -> str:
    """The least a parameter may be."""
    if p.choices is not None:
        return str(next(iter(p.choices)))
    match p.unit:
        case Unit.DURATION:
            return format_duration(int(p.low))
        case Unit.PERCENT:
            return format_percent(p.low)
        case Unit.NAME:
            return p.example
    return str(int(p.low))


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_of_the_catalogue_can_be_written(kind: str) -> None:
    fault = FAULTS[kind]
    lines = [f"fault: {kind}", f"target: {TARGETS[fault.TARGET]}", "at: 2 s"]
    lines += [f"{p.key}: {_written(p)}" for p in parameters(fault).values()]
    lines += [] if fault.REPAIRS_ITSELF else ["for: 5 s"]
    switch = ", switch: {classes: [{priority: 0, lossless: yes}]}" if kind == "pause-storm" else ""
    topology = f"preset: tiny, pods: 2, segments: 1, cores: 2, spare_hosts: 1{switch}"
    if kind == "optical-circuits":
        topology = "preset: tiny-ub-mesh"
    text = (
        f"drill: d\nsummary: s\ntopology: {{{topology}}}\n"
        f"timeline: {{faults: [{{{', '.join(lines)}}}]}}\nexpect: [packets_lost: {{at_most: 9}}]"
    )
    (planned,) = load(text).timeline.faults
    assert fault is type(planned.fault)
    assert planned.repaired_at_ns is not None or kind == "bgp-reset"


def test_a_slow_kernel_gets_less_traffic_and_longer_ticks() -> None:
    workload = load(GOOD.replace("load: 20 %", "load: 40 %, tick: 2 ms")).workload
    assert workload.tick_ns == 2_000_000
    assert workload.slowed(1) == workload
    assert workload.slowed(10) == replace(workload, load=0.4 / 10, tick_ns=5_000_000)
    assert workload.slowed(40) == replace(workload, load=0.4 / 40, queue_pairs=2, tick_ns=20_000_000)
    assert replace(workload, tick_ns=50_000_000).slowed(100).tick_ns == 50_000_000


def test_only_an_emulated_kernel_gets_more_time_and_every_such_limit_says_so() -> None:
    drill = load(GOOD)
    assert drill.slowed(10).expectations[0] == drill.expectations[0]
    emulated = [e.text for e in drill.slowed(40).expectations]
    assert emulated[0] == "worst outage of hit flows of cut at failure below 200 ms (slow kernel; the file: 50 ms)"
    assert emulated[3:] == [e.text for e in drill.expectations[3:]]


@pytest.mark.parametrize(
    ("metric", "written", "tenth", "emulated"),
    [
        ("packets_lost: {at_least: 70, flows: hit}", "at least 70", "at least 7", "at least 1"),
        ("packets_lost: {at_most: 290, flows: hit}", "at most 290", "at most 29", "at most 29"),
        ("packets_lost: {at_most: 0}", "at most 0", "at most 0", "at most 0"),
        ("packets_lost: {at_least: 1, flows: hit}", "at least 1", "at least 1", "at least 1"),
        ("queue_pair_deaths: {at_least: 16, flows: hit}", "at least 16", "at least 16", "at least 8"),
        ("queue_pair_deaths: {at_most: 3}", "at most 3", "at most 3", "at most 2"),
    ],
)
def test_counts_are_asked_in_proportion_to_what_is_sent(metric: str, written: str, tenth: str, emulated: str) -> None:
    head, _, _ = GOOD.partition("expect:")
    drill = load(f"{head}expect:\n  - {metric}\n").slowed(1)
    said = [drill.slowed(times).expectations[0].text for times in (1, 10, 40)]
    for text, wanted in zip(said, (written, tenth, emulated), strict=True):
        assert text.partition(" (slow kernel")[0].endswith(wanted)
        assert ("slow kernel; the file: " in text) == (wanted != written)


def test_a_link_that_turns_slow_leaves_as_much_less_when_less_is_sent() -> None:
    drill = catalogue.load("rate-drop").slowed(4)
    (planned,), (written,) = drill.timeline.faults, catalogue.load("rate-drop").timeline.faults
    assert isinstance(planned.fault, RateDrop)
    assert isinstance(written.fault, RateDrop)
    assert planned.fault.rate == written.fault.rate / 4
    assert drill.workload.load == catalogue.load("rate-drop").workload.load / 4


@pytest.mark.parametrize("key", ["summary", "description"])
@pytest.mark.parametrize("bad", ["\\e[2J", "\\ud800", "\\0"])
def test_text_that_would_steer_a_terminal_is_refused(key: str, bad: str) -> None:
    text = "\n".join(line for line in GOOD.splitlines() if not line.startswith(f"{key}:"))
    with pytest.raises(
        InputError, match=f"{key}(: holds the control character '.*'; remove it| is '.*'; write text)"
    ) as caught:
        drill_from(parse(f'{text}\n{key}: "a{bad}b"\n', "drill.yaml"), Path())
    assert all(problem.isprintable() for problem in caught.value.problems)
