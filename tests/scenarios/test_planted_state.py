"""Faults of the product itself that before-and-after comparison cannot see: each planted one fails a drill, by name.

               plane 0        plane 1
host 0 ==x==== ToR 0 -- Agg -- ToR 0 ==== host 1      x is cut and repaired, another port is slow for a while
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpn.results.judge.verdict import Check, Outcome
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.run import session
from hpn.scenarios.run.run_order import Order
from hpn.testbed.fabric.model import Fabric, Link
from hpn.testbed.files.document import parse
from hpn.testbed.lab.breaking.impair_egress import EgressShapers
from hpn.testbed.lab.tor import Tor
from hpn.testbed.lag.speakers import Speaking
from hpn.testbed.routing import ecmp
from hpn.testbed.routing.pathcontrol.actions import Action, Reachability
from hpn.testbed.routing.pathcontrol.destinations import Update
from hpn.testbed.routing.pathcontrol.host_agent import HostAgent

_DRILL = """
drill: planted
summary: a link is cut and repaired while another port is slow
topology: {segments: 2, hosts: 2, rails: 1, aggs: 1, scale: 10000}
workload: {pattern: permutation, queue_pairs: 4, load: 10 %, tick: 10 ms}
profile: quick
timeline:
  healthy: 500 ms
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 500 ms, for: 600 ms}
    - {id: slow, fault: rate-drop, target: p0.s1.h1.r0.1, at: 500 ms, for: 600 ms, rate: 50 %}
  settle: 2500 ms
expect:
  - state_restored: yes
"""
_TOR = "p0.s0.t0.1"

Plant = Callable[[pytest.MonkeyPatch], None]


def _port_id_without_offset(patch: pytest.MonkeyPatch) -> None:
    make = Tor._speaker

    def speaker(self: Tor, fabric: Fabric, link: Link, *rest: Any) -> Speaking:
        if self.node.name == _TOR:
            bare = link.upper.port_id - fabric.spec.lacp.port_id_offset * (self.node.index + 1)
            link = replace(link, upper=replace(link.upper, port_id=bare))
        return make(self, fabric, link, *rest)

    patch.setattr(Tor, "_speaker", speaker)


def _one_seed_everywhere(patch: pytest.MonkeyPatch) -> None:
    seed = ecmp._seed
    patch.setattr(ecmp, "_seed", lambda node: replace(seed(node), value="4711"))


def _shaper_left_behind(patch: pytest.MonkeyPatch) -> None:
    async def lift(_self: EgressShapers, _key: object) -> None:
        """Forget to."""

    patch.setattr(EgressShapers, "lift", lift)


def _all_reshuffled_on_return(patch: pytest.MonkeyPatch) -> None:
    follow = HostAgent.follow
    lost: set[tuple[int, str]] = set()

    def followed(self: HostAgent, update: Update, now_ns: int) -> list[Action]:
        news = [action for action in update.actions if isinstance(action, Reachability)]
        came_back = any(said.reachable and (id(self), said.dst_ip) in lost for said in news)
        lost.update((id(self), said.dst_ip) for said in news if not said.reachable)
        if came_back:
            for number, connection in self._connections.items():
                self._connections[number] = replace(connection, home_sport=next(self._sports.candidates(number)))
            self._unplaced.update(dict.fromkeys(self._connections))
        return follow(self, update, now_ns)

    patch.setattr(HostAgent, "follow", followed)


def _failed(out: Path) -> Iterator[Check]:
    drill = drill_from(parse(_DRILL, "planted.yaml"), Path())
    run = session.run(Order(drill, out, ()), lambda _news: None)
    return (check for check in run.verdict().checks if check.outcome is Outcome.FAIL)


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("plant", "check", "evidence"),
    [
        (_port_id_without_offset, "the lab as the fabric decides", "port 1, should be system 00:00:5e:00:01:01"),
        (_one_seed_everywhere, "the lab as the fabric decides", "ECMP seed of p0.s0.t0.0: is 4711, should be "),
        (
            _shaper_left_behind,
            "state restored",
            "rate of p0.s1.h1:r0p1: is 10000000 bit/s, control first, should be 20000000 bit/s",
        ),
        # Which of the two a queue pair does first depends on the machine's load.
        (
            _all_reshuffled_on_return,
            "queue pairs leave for a reason",
            "though its destination was not lost|moved at a failure and did not return",
        ),
    ],
)
def test_what_is_planted_fails_a_drill_that_names_it(plant: Plant, check: str, evidence: str, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        failed = {found.text: found.evidence for found in _failed(tmp_path)}
    named = [words for text, words in failed.items() if text.startswith(check)]
    assert named, f"nothing of {check!r} failed, but {failed}"
    assert re.search(evidence, named[0])


@pytest.mark.kernel
def test_nothing_planted_fails_none_of_it(tmp_path: Path) -> None:
    assert [check.text for check in _failed(tmp_path)] == []
