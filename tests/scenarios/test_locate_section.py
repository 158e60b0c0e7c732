"""``locate:`` of a drill: its keys, and what is refused because nothing could be located or drained."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.locate_section import Act, Locating
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import parse

DRILL = """\
drill: mine
summary: mine
topology: {topology}
{more}
timeline: {{healthy: 1 s}}
expect:
  - {expect}
"""
RING = "collective: {kind: all-reduce, size: 1 MB}"
STREAMS = "locate: {act: drain, hold: 1 s, method: voting}"


def _drill(more: str, expect: str = "noise_floor: {at_most: 5 ms}", topology: str = "tiny") -> Locating | None:
    text = DRILL.format(topology=topology, more=more, expect=expect)
    return drill_from(parse(text, "mine.yaml"), Path()).locating


def test_its_keys_and_what_is_usual() -> None:
    assert _drill(STREAMS) == Locating("voting", Act.DRAIN, 10**9)
    assert _drill("locate: {}") == Locating("likelihood", Act.NOTHING, 500_000_000)
    assert _drill("workload: {load: 10 %}") is None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("locate: {method: guess}", "mine.yaml:4: locate.method"),
        ("locate: {act: pray}", "mine.yaml:4: locate.act"),
        ("locate: {hold: 2 min}", "mine.yaml:4: locate.hold"),
        ("locate: {methods: voting}", "mine.yaml:4: unknown key 'methods' in locate"),
        ("locate: drain", "mine.yaml:4: locate"),
        (f"locate: {{act: drain}}\njob: {{{RING}}}", "locate.act acts while streams run"),
        (
            f"locate: {{}}\njob: {{{RING}, spray: {{ports: 4, reorder: 16}}}}",
            "locate needs the path of each queue pair",
        ),
        (f"locate: {{}}\njob: {{{RING}, transport: multipath}}", "locate needs the path of each queue pair"),
        (
            "locate: {}\nworkload: {client: {run: iperf3, protocol: udp, rate: 50M}}",
            "locate counts packets of streams or of a job",
        ),
    ],
)
def test_bad_input_is_refused_with_its_place(more: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        _drill(more)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (f"job: {{{RING}, spray: {{ports: 4, reorder: 16}}}}", r"false_alarms needs the path of each queue pair"),
        (
            "workload: {client: {run: iperf3, protocol: udp, rate: 50M}}",
            r"says nothing of a client.*write workload\.pattern, or job:",
        ),
    ],
)
def test_what_is_expected_of_locating_needs_packets_whose_paths_are_known(more: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        _drill(more, "false_alarms: {at_most: 0}")
    assert _drill(f"job: {{{RING}}}", "false_alarms: {at_most: 0}") is None


def test_switches_that_balance_packets_leave_no_path_to_count_on() -> None:
    sprayed = "{preset: tiny, switch: {balancing: {policy: spray}}}"
    with pytest.raises(InputError, match="locate needs the path of each stream"):
        _drill("locate: {}", topology=sprayed)


def test_a_fabric_without_second_ways_has_nothing_to_drain() -> None:
    lone = "{architecture: single-tor, segments: 2, hosts: 1, rails: 1, aggs: 1}"
    with pytest.raises(InputError, match=r"locate\.act drain finds nothing to take out"):
        _drill("locate: {act: drain}", topology=lone)
    assert _drill("locate: {act: nothing}", topology=lone) is not None


def test_only_bound_queue_pairs_can_be_bound_to_another_port() -> None:
    with pytest.raises(InputError, match=r"mine.yaml:4: locate\.act rebind needs bound queue pairs"):
        _drill("locate: {act: rebind}")
    bound = "{preset: tiny, nic: {port_selection: queue-affinity}}"
    found = _drill("locate: {act: rebind}", "wrong_drains: {at_most: 0}", bound)
    assert found == Locating(act=Act.REBIND)
    assert found is not None
    assert "moves queue pairs off a port that is accused for 500 ms" in found.text


def test_figures_of_drains_need_drains() -> None:
    for more in ("locate: {}", "workload: {load: 10 %}"):
        with pytest.raises(InputError, match="wrong_drains is about links taken out"):
            _drill(more, "wrong_drains: {at_most: 0}")
    assert _drill(STREAMS, "wrong_drains: {at_most: 0}") is not None
