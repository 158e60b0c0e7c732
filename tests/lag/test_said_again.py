"""What a Partner says again is not worked through anew: held against machines that work everything through."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.lag.config import SECOND_NS, LacpConfig, PortConfig
from hpn.testbed.lag.lacpdu import Lacpdu, PortInfo, PortState
from hpn.testbed.lag.machine import Action, LacpSystem

_PORTS = ("eth0", "eth1")
_STATES = st.sampled_from([0x3D, 0x3F, 0x0D, 0x05, 0x07, 0x45, 0x3C, 0x8F, 0x39])
_STEPS = st.one_of(
    st.tuples(st.just("carrier"), st.sampled_from(_PORTS), st.booleans()),
    st.tuples(st.just("pdu"), st.sampled_from(_PORTS), _STATES, st.sampled_from(["us", "us before", "nobody"])),
    st.tuples(st.just("again"), st.sampled_from(_PORTS)),
    st.tuples(st.just("refuse"), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([1, 50, 400, 1000, 3100, 30_000])),
)


class _Thorough(LacpSystem):
    """Forgets before each step what it has worked through already."""

    def receive(self, port: str, pdu: Lacpdu, now: int) -> list[Action]:
        self._forget()
        return super().receive(port, pdu, now)

    def tick(self, now: int) -> list[Action]:
        self._forget()
        return super().tick(now)

    def _forget(self) -> None:
        for port in self._ports.values():
            port.stirred, port._settled, port._last = True, None, None


def _config(*, restore: bool, independent: bool) -> LacpConfig:
    return LacpConfig(
        system="02:00:00:00:00:01",
        key=1,
        independent=independent,
        wait_to_restore_ns=SECOND_NS if restore else 0,
    )


@given(st.lists(_STEPS, max_size=60), st.booleans(), st.booleans())
def test_machines_that_skip_what_they_know_do_what_thorough_ones_do(
    steps: list[tuple[object, ...]], restore: bool, independent: bool
) -> None:
    config = _config(restore=restore, independent=independent)
    ports = [PortConfig(name, number) for number, name in enumerate(_PORTS, 1)]
    quick, thorough = LacpSystem(config, ports), _Thorough(config, ports)
    now, last = 0, dict[str, Lacpdu]()
    for step in [("carrier", "eth0", True), ("carrier", "eth1", True), *steps]:
        now += 1000
        done = [_act(system, step, last, now) for system in (quick, thorough)]
        if step[0] == "wait":
            now += int(str(step[1])) * 1_000_000
            done = [system.tick(now) for system in (quick, thorough)]
        assert done[0] == done[1]
        assert quick.status() == thorough.status()
        assert quick.next_deadline() == thorough.next_deadline()


def _act(system: LacpSystem, step: tuple[object, ...], last: dict[str, Lacpdu], now: int) -> list[Action]:
    """One step, and a look at the timers after it, as an alarm would do that is due at the same moment."""
    actions: list[Action] = []
    match step:
        case ("carrier", str(port), bool(up)):
            actions = system.carrier(port, up, now)
        case ("pdu", str(port), int(state), str(view)):
            actions = system.receive(port, _pdu(system, port, state, view, last), now)
        case ("again", str(port)) if port in last:
            actions = system.receive(port, last[port], now)
        case ("refuse", bool(refusing)):
            system.refusing = refusing
    return actions + system.tick(now)


def _pdu(system: LacpSystem, port: str, state: int, view: str, last: dict[str, Lacpdu]) -> Lacpdu:
    """A PDU of the one Partner that knows us as we are, as we were when it last spoke, or not at all."""
    status = next(each for each in system.status() if each.name == port)
    seen = {"us": status.actor, "us before": last[port].partner if port in last else status.actor}.get(view)
    actor = PortInfo(65535, "02:00:00:00:00:02", 7, 255, 300, PortState(state))
    last[port] = Lacpdu(actor, seen or PortInfo(0, "00:00:00:00:00:00", 0, 0, 0, PortState(0)))
    return last[port]


def test_what_is_said_again_costs_no_selection_and_no_new_pdu() -> None:
    system = LacpSystem(_config(restore=False, independent=False), [PortConfig("eth0", 1)])
    system.carrier("eth0", True, 0)
    last: dict[str, Lacpdu] = {}
    for now in range(0, 6 * SECOND_NS, SECOND_NS // 2):
        system.receive("eth0", _pdu(system, "eth0", 0x3F, "us", last), now)
        system.tick(now)
    assert system.active_ports == ("eth0",)
    assert system.receive("eth0", last["eth0"], now + 1) == []
    assert system.again("eth0", last["eth0"], now + 2)
    first, second = (system.tick(now + seconds * SECOND_NS) for seconds in (1, 2))
    assert [type(action).__name__ for action in (*first, *second)] == ["Transmit", "Transmit"]
    assert first[0].pdu is second[0].pdu  # type: ignore[union-attr]
