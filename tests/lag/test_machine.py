"""The LACP machines against the text of IEEE 802.1AX-2014, in pretended time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.lag.config import SECOND_NS, LacpConfig, PortConfig
from hpn.testbed.lag.lacpdu import Lacpdu, PortInfo, PortState
from hpn.testbed.lag.machine import Action, LacpSystem, StateChanged, Transmit
from hpn.testbed.lag.states import Mux, Rx, Selected
from tests.lag.wire import DELAY_NS, OTHER, Wire, dual_tor, host, tor

BOTH = ("eth0", "eth1")


def converged(*tors: LacpSystem) -> Wire:
    wire = dual_tor(host(), *(tors or (tor(300), tor(600))))
    wire.run(5)
    return wire


class TestHpnDualTor:
    """host eth0 -- tor0, host eth1 -- tor1: one system ID, port numbers 301 and 601."""

    def test_two_tors_with_one_system_id_make_one_lag(self) -> None:
        wire = converged()
        assert wire.active("host") == BOTH
        assert wire.active("tor0") == wire.active("tor1") == ("down0",)
        assert [wire.port("host", port).partner.port for port in BOTH] == [301, 601]
        assert {wire.port("host", port).partner.system for port in BOTH} == {"00:00:5e:00:01:01"}

    def test_ports_attach_after_the_aggregate_wait(self) -> None:
        wire = dual_tor(host(), tor(300), tor(600))
        wire.run(1.9)
        assert wire.active("host") == ()
        wire.run(0.2)
        assert wire.active("host") == BOTH

    def test_a_shorter_aggregate_wait_starts_sooner(self) -> None:
        wire = dual_tor(host(wait_s=0.2), tor(300, wait_s=0.2), tor(600, wait_s=0.2))
        wire.run(0.3)
        assert wire.active("host") == BOTH

    def test_carrier_loss_detaches_at_once_and_only_that_port(self) -> None:
        wire = converged()
        actions = wire.systems["host"].carrier("eth0", False, wire.now)
        assert wire.active("host") == ("eth1",)
        assert [a.what for a in actions if isinstance(a, StateChanged)] == ["port-disabled", "attached"]

    def test_a_returning_link_is_not_made_to_wait(self) -> None:
        wire = converged()
        wire.carrier(("host", "eth0"), False)
        wire.run(20)
        wire.carrier(("host", "eth0"), True)
        wire.run(0.01)
        assert wire.active("host") == BOTH
        assert wire.active("tor0") == ("down0",)

    def test_one_end_that_sees_the_carrier_late_still_converges_at_once(self) -> None:
        wire = converged()
        wire.carrier(("host", "eth0"), False)
        wire.run(1)
        wire._do("tor0", wire.systems["tor0"].carrier("down0", True, wire.now))
        wire.run(0.005)
        wire._do("host", wire.systems["host"].carrier("eth0", True, wire.now))
        wire.run(0.01)
        assert wire.active("host") == BOTH

    def test_a_restarted_tor_is_dropped_at_its_first_pdu_and_taken_back(self) -> None:
        wire = converged()
        wire.systems["tor0"] = tor(300)
        wire._do("tor0", wire.systems["tor0"].carrier("down0", True, wire.now))
        wire.run(0.001)
        assert wire.active("host") == ("eth1",)
        wire.run(2.1)
        assert wire.active("host") == BOTH


class TestSilence:
    @pytest.mark.parametrize(("fast", "timeout_s"), [(True, 3), (False, 90)])
    def test_it_expires_after_three_periods_and_is_defaulted_three_seconds_later(
        self, fast: bool, timeout_s: int
    ) -> None:
        wire = dual_tor(host(fast=fast), tor(300), tor(600))
        wire.run(5)
        wire.mute("tor0")
        wire.run(200)
        last = max(at for at, name, _, _ in wire.sent if name == "tor0" and at <= 5 * SECOND_NS) + DELAY_NS
        if not fast:
            last = max(last, *(at for at in wire.seen("host", "eth0", "current")))
        assert list(wire.seen("host", "eth0", "expired"))[-1] == last + timeout_s * SECOND_NS
        assert list(wire.seen("host", "eth0", "defaulted")) == [last + (timeout_s + 3) * SECOND_NS]
        assert wire.active("host") == ("eth1",)
        assert wire.port("host", "eth0").mux is Mux.DETACHED

    def test_an_expired_port_stops_distributing_and_its_own_state_says_so(self) -> None:
        wire = converged()
        wire.mute("tor0")
        wire.run(3.5)
        port = wire.port("host", "eth0")
        assert port.rx is Rx.EXPIRED
        assert port.actor.state & (PortState.EXPIRED | PortState.DISTRIBUTING) == PortState.EXPIRED

    def test_two_ends_that_gave_each_other_up_meet_again(self) -> None:
        wire = converged()
        wire.mute("tor0")
        wire.mute("host")
        wire.run(20)
        wire.mute("tor0", False)
        wire.mute("host", False)
        wire.run(4)
        assert wire.active("host") == BOTH

    def test_a_port_without_a_partner_carries_nothing(self) -> None:
        nic = host(1)
        nic.carrier("eth0", True, 0)
        for second in range(1, 60):
            nic.tick(second * SECOND_NS)
        assert nic.active_ports == ()
        assert nic.status()[0].rx is Rx.DEFAULTED

    def test_slow_rate_sends_every_30_seconds(self) -> None:
        wire = dual_tor(host(fast=False), tor(300, fast=False), tor(600, fast=False))
        wire.run(100)
        before = len(wire.sent)
        wire.run(300)
        assert len(wire.sent) - before == 4 * 10


class TestSelection:
    @pytest.mark.parametrize("stranger", [tor(600, system=OTHER), tor(600, key=8), tor(600, priority=1)])
    def test_a_partner_of_another_system_key_or_priority_is_refused(self, stranger: LacpSystem) -> None:
        wire = converged(tor(300), stranger)
        assert wire.active("host") == ("eth0",)
        assert wire.port("host", "eth1").selected is Selected.STANDBY
        assert wire.active("tor1") == ()

    def test_a_tor_that_refuses_is_left_at_once_and_taken_back(self) -> None:
        wire = converged()
        tor0 = wire.systems["tor0"]
        tor0.refusing = True
        wire.run(1.1)  # the pretended network has it act at its next turn
        assert wire.active("host") == ("eth1",)
        assert wire.active("tor0") == ()
        assert wire.port("tor0", "down0").selected is Selected.STANDBY
        assert wire.port("host", "eth0").rx is Rx.CURRENT, "it still speaks"
        wire.run(60)
        assert wire.active("host") == ("eth1",)
        tor0.refusing = False
        wire.run(2.1)
        assert wire.active("host") == BOTH

    def test_a_standby_port_takes_over_when_the_active_link_goes(self) -> None:
        wire = converged(tor(300), tor(600, system=OTHER))
        wire.carrier(("host", "eth0"), False)
        wire.run(0.001)
        assert wire.active("host") == ("eth1",)
        wire.carrier(("host", "eth0"), True)
        wire.run(10)
        assert wire.active("host") == ("eth1",), "stable: a working aggregator is not left"

    def test_the_aggregator_with_most_ports_wins(self) -> None:
        wire = dual_tor(host(3), tor(300, system=OTHER), tor(300), tor(600))
        wire.run(5)
        assert wire.active("host") == ("eth1", "eth2")

    def test_a_tor_that_comes_back_as_another_system_is_refused(self) -> None:
        wire = converged()
        wire.carrier(("host", "eth1"), False)
        wire.systems["tor1"] = tor(600, system=OTHER)
        wire.carrier(("host", "eth1"), True)
        wire.run(10)
        assert wire.active("host") == ("eth0",)
        changes = [c for _, name, c in wire.changes if name == "host" and c.what == "partner-changed"]
        assert changes[-1].port == "eth1"
        assert changes[-1].detail["system"] == OTHER

    def test_a_cable_from_a_system_to_itself_is_not_aggregated(self) -> None:
        wire = Wire({"host": host()}, {("host", "eth0"): ("host", "eth1")})
        wire.carrier(("host", "eth0"), True)
        wire.run(10)
        assert wire.active("host") == ()

    @pytest.mark.parametrize("numbers", [(1, 2), (7, 7)])
    def test_partners_that_refuse_aggregation_are_taken_one_at_a_time(self, numbers: tuple[int, int]) -> None:
        nic = host(wait_s=0)
        for name, number in zip(BOTH, numbers, strict=True):
            nic.carrier(name, True, 0)
            lone = PortState.ACTIVITY | PortState.SYNCHRONIZATION
            nobody = PortInfo(0, "00:00:00:00:00:00", 0, 0, 0, PortState(0))
            partner = PortInfo(1, OTHER, 7, 255, number, lone)
            nic.receive(name, Lacpdu(partner, nobody), 0)
        nic.tick(1)
        assert nic.active_ports == ("eth0",)


FATE = st.lists(st.integers(0, 3 * SECOND_NS), max_size=2).map(tuple)
UP_OR_DOWN = st.tuples(st.sampled_from(BOTH), st.booleans(), st.floats(0, 4))


class TestAlways:
    @given(st.lists(FATE, max_size=60), st.lists(UP_OR_DOWN, max_size=8), st.booleans())
    def test_any_loss_delay_duplication_and_flapping_ends_in_one_lag(
        self, fates: list[tuple[int, ...]], flaps: list[tuple[str, bool, float]], fast: bool
    ) -> None:
        wire = dual_tor(host(fast=fast), tor(300), tor(600))
        left = iter(fates)
        wire.channel = lambda: next(left, (DELAY_NS,))
        for port, up, pause in flaps:
            wire.carrier(("host", port), up)
            wire.run(pause)
        for port in BOTH:
            wire.carrier(("host", port), True)
        wire.channel = lambda: (DELAY_NS,)
        wire.run(45 if fast else 140)
        assert wire.active("host") == BOTH
        assert wire.active("tor0") == wire.active("tor1") == ("down0",)
        assert_never_more_than_three_pdus_a_second(wire)

    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2 * SECOND_NS)), max_size=60))
    def test_a_tick_leaves_nothing_due_and_nothing_without_carrier_is_active(
        self, steps: list[tuple[int, int]]
    ) -> None:
        wire = dual_tor(host(), tor(300), tor(600))
        nic, now = wire.systems["host"], 0
        up = dict.fromkeys(BOTH, True)
        for choice, pause in steps:
            now += pause
            port = BOTH[choice % 2]
            if choice < 2:
                up[port] = not up[port]
                nic.carrier(port, up[port], now)
            else:
                nic.receive(port, a_pdu_for(nic, port), now)
            nic.tick(now)
            due = nic.next_deadline()
            assert due is None or due > now
            assert all(up[active] for active in nic.active_ports)


def a_pdu_for(nic: LacpSystem, port: str) -> Lacpdu:
    """What a synchronised ToR would send."""
    actor = next(status.actor for status in nic.status() if status.name == port)
    state = PortState(0x3F)
    return Lacpdu(PortInfo(65535, "00:00:5e:00:01:01", 7, 255, 300 + actor.port, state), actor)


def assert_never_more_than_three_pdus_a_second(wire: Wire) -> None:
    sent: dict[tuple[str, str], list[int]] = {}
    for at, system, port, _ in wire.sent:
        sent.setdefault((system, port), []).append(at)
    for times in sent.values():
        assert all(later - early >= SECOND_NS for early, later in zip(times, times[3:], strict=False))


NIC = "02:00:00:00:00:0a"
LONG = PortState.ACTIVITY | PortState.AGGREGATION | PortState.SYNCHRONIZATION


def lone_port(*, independent: bool = False) -> LacpSystem:
    """One port, up at 0, that waits for nobody."""
    config = LacpConfig(NIC, key=9, aggregate_wait_ns=0, independent=independent)
    nic = LacpSystem(config, [PortConfig("eth0", 1)])
    nic.carrier("eth0", True, 0)
    return nic


def heard(nic: LacpSystem, now: int, state: PortState = LONG, view: PortInfo | None = None) -> list[Action]:
    """A partner in ``state`` that takes ``nic`` for ``view``; by default for what it is."""
    partner = PortInfo(1, OTHER, 7, 255, 1, state)
    return nic.receive("eth0", Lacpdu(partner, view or nic.status()[0].actor), now)


def pdus(actions: list[Action]) -> int:
    return sum(isinstance(action, Transmit) for action in actions)


class TestReceive:
    def test_a_partner_that_knows_us_and_is_in_sync_is_taken(self) -> None:
        nic = lone_port()
        heard(nic, 1)
        nic.tick(2)
        assert nic.active_ports == ("eth0",)

    @pytest.mark.parametrize(
        "view",
        [
            PortInfo(65535, NIC, 8, 255, 1, LONG),
            PortInfo(65535, NIC, 9, 255, 2, LONG),
            PortInfo(65535, OTHER, 9, 255, 1, LONG),
            PortInfo(65535, NIC, 9, 255, 1, PortState.ACTIVITY),
        ],
    )
    def test_a_partner_that_takes_us_for_another_is_not_in_sync(self, view: PortInfo) -> None:
        nic = lone_port()
        heard(nic, 1, view=view)
        nic.tick(2)
        assert nic.active_ports == ()

    def test_a_passive_partner_that_takes_us_for_passive_is_not_in_sync(self) -> None:
        nic = lone_port()
        heard(nic, 1, LONG & ~PortState.ACTIVITY, PortInfo(65535, NIC, 9, 255, 1, PortState.AGGREGATION))
        nic.tick(2)
        assert nic.active_ports == ()

    def test_expired_is_over_when_the_partner_is_heard_again(self) -> None:
        nic = lone_port()
        assert PortState.EXPIRED in nic.status()[0].actor.state
        heard(nic, 1)
        assert PortState.EXPIRED not in nic.status()[0].actor.state

    def test_a_changed_partner_is_let_go_before_it_is_selected_anew(self) -> None:
        nic = lone_port()
        heard(nic, 1)
        nic.tick(2)
        changed = Lacpdu(PortInfo(1, OTHER, 8, 255, 1, LONG), nic.status()[0].actor)
        names = [action.what for action in nic.receive("eth0", changed, 3) if isinstance(action, StateChanged)]
        assert names == ["partner-changed", "unselected", "attached", "detached", "selected", "waiting"]


class TestMux:
    def test_ports_that_wait_for_the_same_aggregator_attach_together(self) -> None:
        wire = dual_tor(host(), tor(300), tor(600))
        wire.carrier(("host", "eth1"), False)
        wire.run(0.5)
        wire.carrier(("host", "eth1"), True)
        wire.run(2)  # eth0 has waited; eth1's first LACPDU went out a second after its link came up
        assert wire.active("host") == ()
        wire.run(1.1)
        assert wire.active("host") == BOTH

    def test_with_independent_control_a_port_distributes_only_once_its_partner_collects(self) -> None:
        nic = lone_port(independent=True)
        heard(nic, 1)
        nic.tick(2)
        assert (nic.status()[0].mux, nic.active_ports) == (Mux.COLLECTING, ())
        state = nic.status()[0].actor.state
        assert state & (PortState.COLLECTING | PortState.DISTRIBUTING) == PortState.COLLECTING
        heard(nic, 3, LONG | PortState.COLLECTING)
        assert (nic.status()[0].mux, nic.active_ports) == (Mux.COLLECTING_DISTRIBUTING, ("eth0",))
        heard(nic, 4)
        assert (nic.status()[0].mux, nic.active_ports) == (Mux.COLLECTING, ())
        heard(nic, 5, LONG & ~PortState.SYNCHRONIZATION)
        assert nic.status()[0].mux is Mux.ATTACHED

    def test_with_coupled_control_a_port_does_not_wait_for_its_partner_to_collect(self) -> None:
        nic = lone_port()
        heard(nic, 1)
        nic.tick(2)
        assert nic.active_ports == ("eth0",)

    @pytest.mark.parametrize("fault", ["carrier", "silence"])
    def test_a_port_that_failed_waits_to_be_restored_and_a_new_one_does_not(self, fault: str) -> None:
        wire = dual_tor(host(), tor(300, restore_s=10), tor(600, restore_s=10))
        wire.run(2.1)
        assert wire.active("host") == BOTH, "nothing to restore at the beginning"
        if fault == "carrier":
            wire.carrier(("host", "eth0"), False)
            wire.run(1)
            wire.carrier(("host", "eth0"), True)
        else:
            for end in ("host", "tor0"):
                wire.mute(end)
            wire.run(10)
            for end in ("host", "tor0"):
                wire.mute(end, False)
        wire.run(9.9)
        assert "eth0" not in wire.active("host")
        wire.run(3.2)  # silence: heard a second later, and the host waits 2 s to aggregate anew
        assert wire.active("host") == BOTH
        assert wire.active("tor0") == ("down0",)

    def test_the_wait_to_restore_begins_anew_with_each_failure(self) -> None:
        wire = dual_tor(host(), tor(300, restore_s=10), tor(600, restore_s=10))
        wire.run(2.1)
        for _ in range(3):
            wire.carrier(("host", "eth0"), False)
            wire.run(1)
            wire.carrier(("host", "eth0"), True)
            wire.run(8)
            assert wire.port("tor0", "down0").mux is Mux.ATTACHED_WTR
            assert wire.active("host") == ("eth1",)
        wire.run(3.1)  # the first LACPDU after the link came up took a second
        assert wire.active("host") == BOTH


class TestActivity:
    def test_a_passive_tor_aggregates_with_an_active_host(self) -> None:
        wire = dual_tor(host(), tor(300, active=False), tor(600, active=False))
        wire.run(5)
        assert wire.active("host") == BOTH
        assert PortState.ACTIVITY not in wire.port("host", "eth0").partner.state

    def test_two_passive_ends_never_speak(self) -> None:
        nobody = LacpConfig("02:00:00:00:00:0a", key=9, active=False)
        nic = LacpSystem(nobody, [PortConfig(name, number) for number, name in enumerate(BOTH, 1)])
        wire = dual_tor(nic, tor(300, active=False), tor(600, active=False))
        wire.run(60)
        assert wire.sent == []
        assert wire.active("host") == ()

    def test_a_passive_end_falls_silent_when_its_partner_is_gone(self) -> None:
        wire = dual_tor(host(), tor(300, active=False), tor(600, active=False))
        wire.run(5)
        wire.mute("host")
        wire.run(6.1)
        assert wire.port("tor0", "down0").rx is Rx.DEFAULTED
        before = len([name for _, name, _, _ in wire.sent if name == "tor0"])
        wire.run(60)
        assert len([name for _, name, _, _ in wire.sent if name == "tor0"]) == before
        wire.mute("host", False)
        wire.run(4)
        assert wire.active("host") == BOTH


class TestConsent:
    """Both ends give each other up while a repair brings their LACPDUs through again, crossing on the wire."""

    @given(
        healthy_s=st.floats(4, 6),
        silence_s=st.floats(4.5, 6.5),
        seed=st.integers(0, 2**32),
        independent=st.booleans(),
    )
    def test_no_end_carries_traffic_for_long_that_the_other_refuses(
        self, healthy_s: float, silence_s: float, seed: int, independent: bool
    ) -> None:
        tors = [tor(offset, wait_s=0.2, independent=independent) for offset in (300, 600)]
        wire = dual_tor(host(wait_s=0.2), *tors)
        wire.channel = in_order(wire, seed)
        wire.run(healthy_s)
        for end in ("host", "tor0"):
            wire.mute(end)
        wire.run(silence_s)
        for end in ("host", "tor0"):
            wire.mute(end, False)
        alone_ms = 0
        for _ in range(3000):
            wire.run(0.001)
            ends = wire.port("host", "eth0").actor.state, wire.port("tor0", "down0").actor.state
            alone_ms += any(
                PortState.DISTRIBUTING in one and PortState.COLLECTING not in other for one, other in (ends, ends[::-1])
            )
        assert wire.active("host") == BOTH
        assert alone_ms <= 3, "LACPDUs take at most 0.4 ms"

    def test_a_port_that_waited_in_standby_joins_when_it_can_say_so(self) -> None:
        wire = dual_tor(host(wait_s=0.2), tor(300, wait_s=0.2), tor(600, wait_s=0.2))
        wire.run(5.5)
        tor0 = wire.systems["tor0"]
        for _ in range(3):  # an operator who cannot decide: three LACPDUs in a second are all it may send
            for tor0.refusing in (True, False):
                wire.carrier(("host", "eth0"), True)  # no news; has both ends run their machines
                wire.run(0.3)
        alone_ms = 0
        for _ in range(3000):
            wire.run(0.001)
            alone_ms += wire.active("tor0") != () and "eth0" not in wire.active("host")
        assert wire.active("host") == BOTH
        assert alone_ms <= 1


def in_order(wire: Wire, seed: int) -> Callable[[], tuple[int, ...]]:
    """A channel whose frames take up to 0.4 ms and do not overtake each other."""
    delays, last = Random(seed), 0

    def delay() -> tuple[int, ...]:
        nonlocal last
        last = max(last + 1, wire.now + delays.randrange(20_000, 400_000))
        return (last - wire.now,)

    return delay


class TestTransmit:
    def test_a_partner_that_misjudges_us_is_answered_at_once_but_not_without_limit(self) -> None:
        nic = lone_port()
        sent = [pdus(heard(nic, at, view=replace(nic.status()[0].actor, key=8))) for at in (1, 2, 3, 4)]
        assert sent == [1, 1, 0, 0]
        assert nic.next_deadline() == SECOND_NS
        assert pdus(nic.tick(SECOND_NS)) == 1

    def test_a_partner_that_turns_fast_is_served_at_once_and_then_every_second(self) -> None:
        nic = lone_port()
        for at in range(10):
            heard(nic, at * SECOND_NS)
        assert pdus(nic.tick(9 * SECOND_NS + 1)) == 0
        assert pdus(heard(nic, 10 * SECOND_NS, LONG | PortState.TIMEOUT)) == 1
        assert nic.next_deadline() == 11 * SECOND_NS
        assert pdus(nic.tick(11 * SECOND_NS)) == 1

    def test_a_slow_partner_that_falls_silent_is_asked_every_second_before_it_is_given_up(self) -> None:
        wire = dual_tor(host(fast=False), tor(300, fast=False), tor(600, fast=False))
        wire.run(60)
        wire.mute("tor0")
        wire.run(120)
        expired, defaulted = (list(wire.seen("host", "eth0", what))[-1] for what in ("expired", "defaulted"))
        asked = [
            at for at, name, port, _ in wire.sent if (name, port) == ("host", "eth0") and expired <= at < defaulted
        ]
        assert len(asked) == 3
