"""``sample:`` and what can be expected of it; ``source_ports``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.port_sampling import Ports, Sampling
from hpn.failover.analysis.ports import NicBalance, PortMetrics, PortResult
from hpn.results.judge.verdict import Check, Outcome
from hpn.scenarios.drill.describe import describe
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.schema import WorkloadSection
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.verdict import judge_expectation
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import parse
from hpn.traffic.flows.paths import CHOICES
from tests.scenarios.measured import metrics

MS = 10**6
DRILL = """
drill: queues
summary: what waits where
topology: {}
sample: {}
timeline: {{healthy: 2 s}}
expect:
  - {}
"""


def _drill(expectation: str, sample: str = "{queues: 10 ms}", topology: str = "tiny") -> Drill:
    return drill_from(parse(DRILL.format(topology, sample, expectation), "d.yaml"), Path())


def _mistakes(expectation: str, sample: str = "{queues: 10 ms}", topology: str = "tiny") -> list[str]:
    with pytest.raises(InputError) as caught:
        _drill(expectation, sample, topology)
    return list(caught.value.problems)


def test_a_drill_says_what_is_sampled() -> None:
    drill = _drill("port_imbalance: {at_most: 1.5}", "{queues: 10 ms, ports: switches}")
    assert drill.sample == Sampling(10 * MS, Ports.SWITCHES)
    assert _drill("queue_p99: {below: 5 ms}").sample == Sampling(10 * MS, Ports.TOR_DOWN)
    assert "samples   loads and queues of the ports of all switches, every 10 ms" in describe(drill)
    assert drill.expectations[0].text == "port imbalance at most 1.5 x"


def test_nothing_is_sampled_unless_asked_for() -> None:
    text = DRILL.format("tiny", "{}", "packets_lost: {at_most: 0}").replace("sample: {}\n", "")
    assert drill_from(parse(text, "d.yaml"), Path()).sample is None


def test_a_slow_kernel_samples_less_often() -> None:
    slowed = _drill("queue_worst: {below: 9 ms}").slowed(20)
    assert slowed.sample == Sampling(200 * MS, Ports.TOR_DOWN)


@pytest.mark.parametrize(
    ("expectation", "sample", "topology", "said"),
    [
        ("queue_p99: {below: 5 ms}", "{}", "tiny", "'queues'"),
        ("queue_p99: {below: 5 ms}", "[]", "tiny", "sample"),
        ("queue_p99: {below: 5 ms}", "{queues: 100 us}", "tiny", "100 us is out of range; write 1 ms to 1 s"),
        ("queue_p99: {below: 5 ms}", "{ports: hosts, queues: 5 ms}", "tiny", "sample.ports"),
        ("queue_p99: {below: 5 ms}", "{ports: switches}", "tiny", "'queues'"),
        ("queue_p99: {below: 5 ms, edge: failure}", "{queues: 5 ms}", "tiny", "edge"),
        ("port_imbalance: {below: 5 ms}", "{queues: 5 ms}", "tiny", "port_imbalance.below"),
        ("port_imbalance: {below: 0.5}", "{queues: 5 ms}", "tiny", "port_imbalance.below"),
        ("port_imbalance: {}", "{queues: 5 ms}", "tiny", "has no limit"),
        (
            "port_imbalance: {at_most: 2}",
            "{queues: 5 ms}",
            "{preset: tiny, architecture: single-tor}",
            "can never be judged: every NIC has one port; take a dual-ToR architecture",
        ),
    ],
)
def test_mistakes_are_said_with_the_way_out(expectation: str, sample: str, topology: str, said: str) -> None:
    (problem,) = _mistakes(expectation, sample, topology)
    assert problem.startswith("d.yaml:")
    assert said in problem


def test_an_expectation_of_ports_asks_for_samples() -> None:
    text = DRILL.format("tiny", "{}", "queue_p99: {below: 5 ms}").replace("sample: {}\n", "")
    with pytest.raises(InputError, match=r"can never be judged: nothing is sampled; add sample: \{queues: 10 ms\}"):
        drill_from(parse(text, "d.yaml"), Path())


def test_more_readings_than_fit_are_refused_with_a_period_that_does() -> None:
    text = DRILL.format("medium", "{queues: 1 ms, ports: switches}", "queue_p99: {below: 5 ms}")
    with pytest.raises(InputError) as caught:
        drill_from(parse(text.replace("2 s", "60 s"), "d.yaml"), Path())
    (problem,) = caught.value.problems
    assert "sample.queues makes 30,240,504 readings of 504 ports, at most 4,000,000 fit" in problem
    assert "write 8 ms or more, or a shorter timeline" in problem
    drill_from(parse(text.replace("2 s", "60 s").replace("1 ms", "8 ms"), "d.yaml"), Path())


def test_source_ports_of_a_drill_are_those_that_traffic_knows() -> None:
    text = DRILL.format("tiny", "{}", "packets_lost: {at_most: 0}").replace("sample: {}", "workload: {}")
    assert drill_from(parse(text, "d.yaml"), Path()).workload.source_ports == "disjoint"
    for word in CHOICES:
        given = text.replace("workload: {}", f"workload: {{source_ports: {word}}}")
        assert drill_from(parse(given, "d.yaml"), Path()).workload.source_ports == word
    assert WorkloadSection.model_fields["source_ports"].annotation is not None
    with pytest.raises(InputError, match="source_ports"):
        drill_from(parse(text.replace("workload: {}", "workload: {source_ports: random}"), "d.yaml"), Path())


def _port(name: str, p99_ms: float, max_ms: float, off_ms: float = 0.5) -> PortResult:
    return PortResult(
        name, name, "tor down", "n", 8 * 10**6, 100, 0.5, 1, 1, 3, 1.0, 1, 4200, 1.0, p99_ms, max_ms, off_ms
    )


def _judged(expectation: str, balance: tuple[NicBalance, ...] = ()) -> Check:
    ports = (_port("a:x", 4.0, 9.0), _port("b:x", 6.0, 7.0))
    found = PortMetrics(10.0, Ports.TOR_DOWN, 16.0, 0.1, ports, balance)
    facts = RunFacts(state_differences=())
    return judge_expectation(
        _drill(expectation).expectations[0], Evidence(replace(metrics((), ()), ports=found), facts)
    )


def test_the_port_with_the_longest_queue_counts() -> None:
    p99 = _judged("queue_p99: {at_most: 7 ms}")
    assert (p99.outcome, p99.measured, p99.evidence) == (Outcome.PASS, 6.0, "b:x: 100 readings")
    assert _judged("queue_p99: {at_most: 6.2 ms}").outcome is Outcome.INCONCLUSIVE
    assert _judged("queue_p99: {at_most: 5 ms}").outcome is Outcome.FAIL
    worst = _judged("queue_worst: {at_least: 1 ms}")
    assert (worst.measured, worst.low, worst.high) == (9.0, 9.0, 25.0)
    assert worst.evidence == "a:x: 4,200 bytes, 3 packets dropped"


def test_a_peak_between_two_readings_is_not_denied() -> None:
    assert _judged("queue_worst: {at_most: 20 ms}").outcome is Outcome.INCONCLUSIVE
    assert _judged("queue_worst: {at_most: 26 ms}").outcome is Outcome.PASS


def test_the_nic_whose_ports_differ_most_counts() -> None:
    balance = (NicBalance("even", (50e6, 50e6), (1000, 1000)), NicBalance("uneven", (90e6, 30e6), (900, 300)))
    check = _judged("port_imbalance: {at_most: 2}", balance)
    assert (check.outcome, check.measured, check.unit) == (Outcome.FAIL, 3.0, "x")
    assert check.evidence == "uneven: 90 Mbit/s and 30 Mbit/s"
    assert _judged("port_imbalance: {at_most: 3}", balance).outcome is Outcome.INCONCLUSIVE


def test_a_port_that_sends_nothing_keeps_no_upper_limit() -> None:
    balance = (NicBalance("idle", (50e6, 0.0), (1000, 0)),)
    assert _judged("port_imbalance: {at_most: 1000}", balance).outcome is Outcome.FAIL


def test_what_was_not_sampled_is_not_judged() -> None:
    (expectation,) = _drill("queue_p99: {at_most: 7 ms}").expectations
    assert expectation.metric is METRICS["queue_p99"]
    check = judge_expectation(expectation, Evidence(metrics((), ()), RunFacts()))
    assert (check.outcome, check.evidence) == (Outcome.INCONCLUSIVE, "no port was sampled")
