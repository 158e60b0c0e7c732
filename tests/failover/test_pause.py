"""A NIC that sends pause frames without end: which ports it takes, where it fits, what stands beside it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, cast

import pytest

from hpn.failover.faults import FAULTS, Fault, Need, PauseStorm, PlannedFault, VisibleTo, make, settled
from hpn.failover.faults.compose import clash
from hpn.failover.inject import needs
from hpn.failover.inject.lab_actions import LabActions
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.rtnetlink.mmu import parse_stuck
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lab.breaking.impair import Impairments

NIC, PORT, OTHER_PORT = "p0.s0.h0.r0", "p0.s0.h0.r0.0", "p0.s0.h0.r0.1"
S = 10**9
_HEADER = 16  # of a netlink message


def fabric(**switch: object) -> Fabric:
    return build(FabricSpec.model_validate(PRESETS["tiny"].spec.model_dump() | {"switch": switch}))


LOSSLESS, LOSSY = fabric(), build(PRESETS["tiny"].spec)


class Asked:
    """Notes which bits of which port are stuck, in place of a node's netlink socket."""

    def __init__(self) -> None:
        self.stuck: dict[int, int] = {}

    def run(self, requests: list[bytes]) -> None:
        (request,) = requests
        (ifindex,) = struct.unpack_from("=i", request, _HEADER + 4)
        self.stuck[ifindex] = parse_stuck(request[_HEADER:])

    def of(self, port: str) -> int:
        return self.stuck.get(LOSSLESS.link(port).lower.ifindex, 0)


def actions(asked: Asked) -> LabActions:
    stub = cast("Any", None)  # no other lever is pulled
    ask = cast("Callable[[str], Netlink]", lambda node: asked if node == "p0.s0.h0" else None)
    return LabActions(LOSSLESS, stub, stub, Impairments(LOSSLESS, {}, ask), stub)


async def test_a_nic_is_stuck_at_each_of_its_ports_until_the_repair() -> None:
    asked = Asked()
    action = PauseStorm(NIC).act(actions(asked))
    assert not asked.stuck, "nothing is done yet"
    action.do()
    assert (asked.of(PORT), asked.of(OTHER_PORT)) == (1 << 3, 1 << 3)
    await action.undo()
    assert (asked.of(PORT), asked.of(OTHER_PORT)) == (0, 0)


async def test_storms_of_several_owners_at_a_port_add_up_and_end_one_by_one() -> None:
    asked = Asked()
    on = actions(asked)
    nic, port, same = PauseStorm(NIC, 3).act(on), PauseStorm(PORT, 4).act(on), PauseStorm(PORT, 3).act(on)
    for each in (nic, port, same):
        each.do()
    assert (asked.of(PORT), asked.of(OTHER_PORT)) == (1 << 3 | 1 << 4, 1 << 3)
    await nic.undo()
    assert (asked.of(PORT), asked.of(OTHER_PORT)) == (1 << 3 | 1 << 4, 0), "another owner holds priority 3 there"
    await same.undo()
    assert asked.of(PORT) == 1 << 4
    await port.undo()
    await port.undo()
    assert asked.of(PORT) == 0


def test_it_tells_nobody_and_hits_a_port_or_all_of_a_nic() -> None:
    assert PauseStorm.TELLS is VisibleTo.NOBODY
    assert not PauseStorm(NIC).timers_alone_notice
    assert [link.name for link in PauseStorm(NIC).links_hit(LOSSLESS)] == [PORT, OTHER_PORT]
    assert [link.name for link in PauseStorm(PORT).links_hit(LOSSLESS)] == [PORT]


def test_it_fits_only_switches_with_a_lossless_class_and_a_priority_of_one() -> None:
    lossy = fabric(classes=[{"priority": 3, "dscp": [3]}])
    assert not PauseStorm.misfit(LOSSLESS)
    for none in (LOSSY, lossy):
        assert "write one with switch:" in PauseStorm.misfit(none)
    assert settled(PauseStorm(NIC, 4), LOSSLESS) == PauseStorm(NIC, 4)
    with pytest.raises(InputError, match="priority 5 is not lossless in this topology; write priority: 3 or 4"):
        settled(PauseStorm(NIC, 5), LOSSLESS)


def test_every_other_kind_but_delay_fits_lossless_switches_and_lossy_ones() -> None:
    """Neither is a direct network, whose links alone can be circuits."""
    assert {kind for kind, fault in FAULTS.items() if fault.misfit(LOSSLESS)} == {"link-delay", "optical-circuits"}
    assert {kind for kind, fault in FAULTS.items() if fault.misfit(LOSSY)} == {"pause-storm", "optical-circuits"}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (make("silent-drop", PORT, {}), f"silent-drop leaves nothing of pause-storm on {PORT}"),
        (make("silent-drop", PORT, {"traffic": "all-but-control"}), "leaves nothing of pause-storm"),
        (make("one-way-loss", PORT, {"direction": "up"}), "leaves nothing of pause-storm"),
        (make("one-way-loss", PORT, {"direction": "down"}), ""),
        (make("silent-drop", PORT, {"traffic": "data"}), ""),
        (make("silent-drop", PORT, {"share": 0.5}), ""),
        (make("link-down", PORT, {}), f"link-down leaves nothing of pause-storm on {PORT}"),
        (make("rate-drop", PORT, {"rate": 0.5}), ""),
        (PauseStorm(NIC), ""),
        (PauseStorm(PORT, 4), f"both are pause-storm on {PORT}"),
    ],
)
def test_it_composes_with_what_lets_its_frames_through(other: Fault, why: str) -> None:
    """Pause frames go up, and are neither IP nor LACP."""
    storm = PlannedFault("storm", PauseStorm(PORT), 2 * S, 2 * S)
    assert why in clash(storm, PlannedFault("other", other, 1 * S, 4 * S), LOSSLESS)
    assert bool(why) == bool(clash(storm, PlannedFault("other", other, 1 * S, 4 * S), LOSSLESS))


def test_a_kernel_without_the_discipline_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpn.failover.inject.needs.sandbox.ask", lambda _question: {Need.LOSSLESS: "no such kind"})
    assert {Need.LOSSLESS} == PauseStorm.NEEDS
    with pytest.raises(MachineError, match=r"pause-storm: no .*PFC.* \(no such kind\); run it with --engine uml-virt"):
        needs.check([PauseStorm(NIC)])
