"""Path policies: the words of a topology file, what each is told, and that a lab does what its file's policy says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.events import EventKind
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.spec import PathControlSpec
from hpn.testbed.routing.pathcontrol.actions import Action, Move
from hpn.testbed.routing.pathcontrol.destinations import HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import Connection, HostAgent
from hpn.testbed.routing.pathcontrol.policies import PATH_POLICIES, HostPlace, HostPolicy, PathPolicy
from tests.lab.running import Recorder, cut, running, tiny

DOCS = (Path(__file__).parents[2] / "docs" / "path-control.md").read_text()


def _chosen(folder: Path, control: str) -> str:
    (folder / "net.yaml").write_text(f"preset: tiny\npath_control: {control}\n")
    return load_topology(str(folder / "net.yaml")).path_control.chosen.name


def test_the_page_has_every_policy_in_its_own_words() -> None:
    assert all(f"`{policy.name}`: {policy.summary}" in DOCS for policy in PATH_POLICIES.values())


@pytest.mark.parametrize(
    ("control", "name"),
    [
        ("{policy: steer-destinations}", "steer-destinations"),
        ("{policy: both}", "both"),
        ("{}", "move-source-ports"),
        ("{enabled: true}", "move-source-ports"),
        ("{enabled: false}", "off"),
        ("{enabled: no, policy: move-source-ports}", "off"),
        ("{policy: off}", "off"),  # which YAML reads as false
        ("{policy: 'off', enabled: no}", "off"),
        ("{policy: move-source-ports, enabled: yes}", "move-source-ports"),
    ],
)
def test_the_key_that_turns_it_off_and_the_policy_are_one_thing(tmp_path: Path, control: str, name: str) -> None:
    assert _chosen(tmp_path, control) == name


@pytest.mark.parametrize(
    ("control", "said"),
    [
        (
            "{policy: move-source-port}",
            "policy is 'move-source-port'; write one of move-source-ports, steer-destinations, both, rebind, off"
            " (did you mean move-source-ports?)",
        ),
        ("{policy: yes}", "policy is true; write one of move-source-ports, steer-destinations, both, rebind, off"),
        (
            "{policy: off, enabled: yes}",
            "policy is off, but path_control.enabled is yes; leave one of them out",
        ),
    ],
)
def test_a_policy_that_is_none_is_told_with_its_line(tmp_path: Path, control: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        _chosen(tmp_path, control)
    assert list(refused.value.problems) == [f"{tmp_path}/net.yaml:2: path_control.{said}"]


def test_hpns_own_policy_is_the_agent_that_moves_source_ports() -> None:
    place = HostPlace("n", ("a", "b"), HostSettings(), lambda sport, *_: "ab"[sport % 2], 1)
    assert PathControlSpec().chosen.agent is not None
    agent = PATH_POLICIES["move-source-ports"].agent
    assert agent is not None
    assert isinstance(agent(place), HostAgent)
    assert PATH_POLICIES["off"].agent is None
    assert [policy.name for policy in PATH_POLICIES.values() if policy.steers] == ["steer-destinations", "both"]


class _Still:
    """A policy that asks as ours does and moves nothing."""

    def __init__(self, place: HostPlace) -> None:
        self._agent = HostAgent(place.nic, place.ports, place.settings, place.port_for, place.seed)
        self.wanted: list[Action] = []
        self.remove = self._agent.remove

    @property
    def deadline_ns(self) -> int | None:
        return self._agent.deadline_ns

    def add(self, connections: Iterable[Connection], now_ns: int) -> Sequence[Action]:
        return self._kept(self._agent.add(connections, now_ns))

    def set_active(self, ports: Iterable[str], now_ns: int) -> Sequence[Action]:
        return self._kept(self._agent.set_active(ports, now_ns))

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> Sequence[Action]:
        return self._kept(self._agent.on_frame(port, payload, now_ns))

    def on_timer(self, now_ns: int) -> Sequence[Action]:
        return self._kept(self._agent.on_timer(now_ns))

    def _kept(self, actions: Sequence[Action]) -> Sequence[Action]:
        self.wanted += [action for action in actions if isinstance(action, Move)]
        return [action for action in actions if not isinstance(action, Move)]


@pytest.mark.kernel
async def test_a_lab_does_what_the_policy_of_its_file_says(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, _Still] = {}

    def still(place: HostPlace) -> HostPolicy:
        return made.setdefault(place.nic, _Still(place))

    monkeypatch.setitem(PATH_POLICIES._entries, "still", PathPolicy("still", "asks and moves nothing", still))
    events = Recorder()
    async with running(tiny(path_control={"policy": "still"}), events) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        sports = range(0xC000, 0xC010)
        lab.nics[source.name].connect([Connection(sport, target.ip, 4791, sport) for sport in sports])
        cut(lab, target.links[0])
        await lab.wait_for(lambda: bool(made[source.name].wanted), 10)
        heard = {event.what for event in events.after(0, EventKind.PATH, source.host)}
        assert "unreachable" in heard
        assert "moved" not in heard
