"""Per-port LACP machines: Receive, Periodic Transmission, Mux and Transmit (IEEE 802.1AX-2014, 6.4.12 - 6.4.16).

Pure: the caller provides time and frames. The Mux machine is the one for coupled control (Figure 6-22), as Linux
bonding runs by default: collecting and distributing begin and end together, which is also all that a datapath
with a single set of active ports can express. By configuration it is the one for independent control (Figure 6-21).

LACP is never disabled here and links are never re-plugged to another port of the same System, so LACP_DISABLED and
port_moved are absent. The administrative default Partner is not in Synchronization: a port without an LACP Partner
carries nothing. It requests the same rate as we do, so that two ends that defaulted meet again soon.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from hpn.testbed.lag.config import (
    FAST_PERIODIC_NS,
    LONG_TIMEOUT_NS,
    MAX_PDUS_PER_FAST_PERIOD,
    SHORT_TIMEOUT_NS,
    SLOW_PERIODIC_NS,
    TOLERANCE_NS,
    LacpConfig,
    PortConfig,
)
from hpn.testbed.lag.lacpdu import Lacpdu, PortInfo, PortState
from hpn.testbed.lag.port_at_rest import RestHistory
from hpn.testbed.lag.states import LagId, Mux, Periodic, Rx, Selected

Report = Callable[[str, Mapping[str, str | int]], None]

_NONE = PortState(0)
_MUX_STATE = PortState.SYNCHRONIZATION | PortState.COLLECTING | PortState.DISTRIBUTING
_MUX_FLAGS = {
    Mux.DETACHED: _NONE,
    Mux.ATTACHED_WTR: _NONE,
    Mux.ATTACHED: PortState.SYNCHRONIZATION,
    Mux.COLLECTING: PortState.SYNCHRONIZATION | PortState.COLLECTING,
    Mux.COLLECTING_DISTRIBUTING: _MUX_STATE,
}
_NTT_STATE = PortState.ACTIVITY | PortState.TIMEOUT | PortState.AGGREGATION | PortState.SYNCHRONIZATION


class LacpPort:
    """One Aggregation Port: the variables of 6.4.7 and its machines."""

    def __init__(self, system: LacpConfig, config: PortConfig, report: Report, beat_ns: int | None = None) -> None:
        """Begin (BEGIN). ``report`` gets the name of each state entered.

        With ``beat_ns`` the periodic LACPDUs of a port that carries traffic move to whole seconds after that time. Each
        is early by at most the tolerance and never late, so that ports with the same beat send together.
        """
        self.config = config
        self.enabled = False
        self.rx = Rx.PORT_DISABLED
        self.periodic = Periodic.NO_PERIODIC
        self.mux = Mux.DETACHED
        self.selected = Selected.UNSELECTED
        self.aggregator: LagId | None = None
        self._system = system
        self._report = report
        timeout = PortState.TIMEOUT if system.fast else _NONE
        self._default_partner = PortInfo(0, "00:00:00:00:00:00", 0, 0, 0, timeout)
        self._set_partner(self._default_partner)
        activity = PortState.ACTIVITY if system.active else _NONE
        self._state = activity | PortState.AGGREGATION | PortState.DEFAULTED | timeout
        self._ntt = True
        self._sent: deque[int] = deque(maxlen=MAX_PDUS_PER_FAST_PERIOD)
        self._current_while: int | None = None  # timers: when they expire, None when they do not run
        self._periodic_timer: int | None = None
        self._wait_while: int | None = None
        self._restoring = False  # it carried traffic, failed, and has not been restored since
        self._restore_at: int | None = None
        self.stirred = True
        """True if the Selection Logic or the Mux machine may have to run; their caller clears it."""
        self._settled: tuple[Lacpdu, PortState] | None = None  # the last PDU, and our state, if it changed nothing
        self._last: Lacpdu | None = None  # last one sent
        self._beat_ns = beat_ns

    @property
    def actor(self) -> PortInfo:
        """Our own operational parameters, as sent."""
        system, port = self._system, self.config
        return PortInfo(system.system_priority, system.system, system.key, port.priority, port.number, self._state)

    @property
    def usable(self) -> bool:
        """True while the Partner is heard on a working link."""
        return self.rx is Rx.CURRENT

    @property
    def attached(self) -> bool:
        """True when the Mux has attached the port to its Aggregator."""
        return self.mux not in (Mux.DETACHED, Mux.WAITING)

    @property
    def ready(self) -> bool:
        """Ready_N: the port has waited for others to join (6.4.15), and the rate limit allows it to send that.

        A port that attached without sending would accept traffic as soon as its Partner is in Synchronization. The
        Partner would follow only when it gets an LACPDU, up to a second later; until then the port's frames would be
        lost.
        """
        return self.mux is Mux.WAITING and self._wait_while is None and self._held_until() is None

    def carrier(self, up: bool, now: int) -> None:
        """Set port_enabled. A lost link keeps its selection, so that it comes back undisturbed (6.4.12)."""
        if up == self.enabled:
            return
        self.enabled, self.stirred = up, True
        if up:
            self._enter_expired(now)
        else:
            self._current_while = None
            self._set_partner_state(clear=PortState.SYNCHRONIZATION)
            self._enter_rx(Rx.PORT_DISABLED)

    def receive(self, pdu: Lacpdu, now: int) -> None:
        """Handle an LACPDU: the Receive machine enters CURRENT."""
        if not self.enabled or self.again(pdu, now):
            return
        self._hear(now)
        self.stirred = True
        self._update_selected(pdu.actor)
        answered = not self._update_ntt(pdu.partner)
        self._record_pdu(pdu)
        self._state &= ~PortState.EXPIRED
        self._enter_rx(Rx.CURRENT)
        self._settled = (pdu, self._state) if answered else None

    def again(self, pdu: Lacpdu, now: int) -> bool:
        """Handle an LACPDU if it repeats the last one, which needs no answer; return True if so."""
        if self.rx is not Rx.CURRENT or self._settled is None or self._settled != (pdu, self._state):
            return False
        self._hear(now)
        return True

    def _hear(self, now: int) -> None:
        self._current_while = now + (SHORT_TIMEOUT_NS if self._system.fast else LONG_TIMEOUT_NS)

    def run_timers(self, now: int) -> None:
        """Handle expired timers, and the Partner's influence on the Periodic machine."""
        if self._current_while is not None and now >= self._current_while:
            self.stirred = True
            if self.rx is Rx.CURRENT:
                self._enter_expired(now)
            else:
                self._enter_defaulted()
        held = self._held_until()
        if held is not None and now >= held:
            self._sent.popleft()
            self.stirred |= self.mux is Mux.WAITING  # else ``ready`` would not be evaluated
        if self._wait_while is not None and now >= self._wait_while:
            self._wait_while = None
            self.stirred = True
        if self._restoring or self._restore_at is not None:
            self._run_restore(now)
        self._run_periodic(now)

    def run_mux(self, ready: bool, now: int) -> bool:
        """Take one transition of the Mux machine, if any; return True if so. ``ready`` is its Aggregator's Ready."""
        following = self._next_mux(ready)
        if following is self.mux:
            return False
        self._enter_mux(following, now)
        return True

    def _next_mux(self, ready: bool) -> Mux:
        selected = self.selected is Selected.SELECTED
        in_sync = PortState.SYNCHRONIZATION in self.partner.state
        collecting = not self._system.independent or PortState.COLLECTING in self.partner.state
        following = self.mux
        match self.mux:
            case Mux.DETACHED if self.selected is not Selected.UNSELECTED:
                following = Mux.WAITING
            case Mux.WAITING if self.selected is Selected.UNSELECTED:
                following = Mux.DETACHED
            case Mux.WAITING if selected and ready:
                following = Mux.ATTACHED
            case Mux.ATTACHED_WTR | Mux.ATTACHED if not selected:
                following = Mux.DETACHED
            case Mux.ATTACHED_WTR if not self._restoring:
                following = Mux.ATTACHED
            case Mux.ATTACHED if self._restoring:
                following = Mux.ATTACHED_WTR
            case Mux.ATTACHED if in_sync:
                following = Mux.COLLECTING if self._system.independent else Mux.COLLECTING_DISTRIBUTING
            case Mux.COLLECTING if not selected or not in_sync:
                following = Mux.ATTACHED
            case Mux.COLLECTING if collecting:
                following = Mux.COLLECTING_DISTRIBUTING
            case Mux.COLLECTING_DISTRIBUTING if not selected or not in_sync or not collecting:
                following = Mux.COLLECTING if self._system.independent else Mux.ATTACHED
        return following

    def transmit(self, now: int) -> Lacpdu | None:
        """Return the LACPDU to send now, if NTT and the rate limit allow one (6.4.16). Call it after ``run_timers``."""
        if self.enabled and self._both_passive():
            self._ntt = False
        if not self._ntt or not self.enabled or self._held_until() is not None:
            return None  # NTT stays: a link that returns is answered at once
        self._ntt = False
        self._sent.append(now)
        if self._last is None or self._last.partner is not self.partner or self._last.actor.state != self._state:
            self._last = Lacpdu(self.actor, self.partner)
        return self._last

    def at_rest(self) -> tuple[Lacpdu, Lacpdu, int, int] | None:
        """Return the PDUs it sends and receives, the latter's deadline, and its next due time; None if not at rest.

        Call it after ``run_timers`` and ``transmit``; a port is at rest if it carries traffic and keeps to its beat.
        """
        carries = self.mux is Mux.COLLECTING_DISTRIBUTING and self.rx is Rx.CURRENT and not self._ntt
        if (
            not carries
            or self.periodic is not Periodic.FAST_PERIODIC
            or self._restoring
            or self._restore_at is not None
        ):
            return None
        until, due, settled, last = self._current_while, self._periodic_timer, self._settled, self._last
        if until is None or due is None or due >= until or settled is None or last is None or self._beat_ns is None:
            return None
        said_all = last.partner is self.partner and last.actor.state == settled[1] == self._state
        return (last, settled[0], until, due) if said_all and (due - self._beat_ns) % FAST_PERIODIC_NS == 0 else None

    def resume(self, rested: RestHistory) -> None:
        """Resume after a rest in which the wire handled its timers."""
        self._current_while, self._periodic_timer = rested.until_ns, rested.due_ns
        if rested.said_ns is not None:
            self._sent.clear()
            self._sent.append(rested.said_ns)

    def next_deadline(self) -> int | None:
        """Return when ``run_timers`` or ``transmit`` next has something to do; None when never."""
        waits = (self._ntt and self.enabled) or (self.mux is Mux.WAITING and self._wait_while is None)
        held = self._held_until() if waits else None
        due = self._current_while
        for at in (self._periodic_timer, self._wait_while, self._restore_at, held):
            if at is not None and (due is None or at < due):
                due = at
        return due

    def lag_id(self) -> LagId | None:
        """Return the LAG this port could join; None without a known Partner, or if it is this System (a loop)."""
        partner = self.partner
        if PortState.DEFAULTED in self._state or partner.system == self._system.system:
            return None
        individual = None if PortState.AGGREGATION in partner.state else self.config.number
        return LagId(partner.system_priority, partner.system, partner.key, individual)

    def select(self, selected: Selected) -> None:
        """Set the Selection Logic's decision."""
        if selected is not self.selected:
            self.selected = selected
            if selected is Selected.UNSELECTED:
                self.aggregator = None
            self._report(selected.value, {})

    def _enter_rx(self, state: Rx) -> None:
        if state is not self.rx:
            self.rx = state
            self._report(state.value, {})

    def _enter_expired(self, now: int) -> None:
        self._set_partner_state(clear=PortState.SYNCHRONIZATION, add=PortState.TIMEOUT)
        self._current_while = now + SHORT_TIMEOUT_NS
        self._state |= PortState.EXPIRED
        self._enter_rx(Rx.EXPIRED)

    def _enter_defaulted(self) -> None:
        self._current_while = None
        self._update_selected(self._default_partner)  # update_Default_Selected
        self._set_partner(self._default_partner)
        self._state = self._state & ~PortState.EXPIRED | PortState.DEFAULTED
        self._enter_rx(Rx.DEFAULTED)

    def _enter_mux(self, state: Mux, now: int) -> None:
        if self.mux is Mux.COLLECTING_DISTRIBUTING and not self.usable and self._system.wait_to_restore_ns:
            self._restoring = True
        self.mux = state
        if state is Mux.WAITING:
            self._wait_while = now + self._system.aggregate_wait_ns
        else:
            self._wait_while = None
            self._state = self._state & ~_MUX_STATE | _MUX_FLAGS[state]
            self._ntt = True
        self._report(state.value, {})

    def _update_selected(self, seen: PortInfo) -> None:
        """Unselect when the Partner's identity has changed (6.4.9)."""
        if _identity(seen) == _identity(self.partner):
            return
        detail: Mapping[str, str | int] = {
            "system": seen.system,
            "priority": seen.system_priority,
            "key": seen.key,
            "port": seen.port,
        }
        self._report("partner-changed", detail)
        self.select(Selected.UNSELECTED)

    def _update_ntt(self, view: PortInfo) -> bool:
        """Schedule an answer to a Partner with an outdated view of us (6.4.9); return True if it is outdated."""
        actor = self.actor
        same_port = _parameters(view) == _parameters(actor)
        outdated = not same_port or (view.state ^ actor.state) & _NTT_STATE != _NONE
        self._ntt |= outdated
        return outdated

    def _record_pdu(self, pdu: Lacpdu) -> None:
        """Record the Partner's parameters, and evaluate again whether it is in Synchronization with us (6.4.9)."""
        state, view, actor = pdu.actor.state, pdu.partner, self.actor
        knows_us = _identity(view) == _identity(actor)
        maintained = PortState.ACTIVITY in state or PortState.ACTIVITY in view.state & actor.state
        in_sync = PortState.SYNCHRONIZATION in state and maintained
        if not (in_sync and (knows_us or PortState.AGGREGATION not in state)):
            state &= ~PortState.SYNCHRONIZATION
        self._set_partner(replace(pdu.actor, state=state))
        self._state &= ~PortState.DEFAULTED

    def _set_partner_state(self, *, clear: PortState, add: PortState = _NONE) -> None:
        self._set_partner(replace(self.partner, state=self.partner.state & ~clear | add))

    def _set_partner(self, partner: PortInfo) -> None:
        """Store the Partner, and cache two of its flags that every PDU needs, because flag tests are slow."""
        self.partner = partner
        self._partner_active = PortState.ACTIVITY in partner.state
        self._partner_fast = PortState.TIMEOUT in partner.state

    def _run_restore(self, now: int) -> None:
        """Run the wait to restore while the Partner is heard; otherwise it starts again."""
        if not self._restoring or not self.usable:
            self._restore_at = None
        elif self._restore_at is None:
            self._restore_at = now + self._system.wait_to_restore_ns
        elif now >= self._restore_at:
            self._restoring, self._restore_at, self.stirred = False, None, True

    def _both_passive(self) -> bool:
        """Return True if both ends are passive, so that neither may send (6.4.13, NO_PERIODIC)."""
        return not self._system.active and not self._partner_active

    def _run_periodic(self, now: int) -> None:
        if not self.enabled or self._both_passive():
            self.periodic, self._periodic_timer = Periodic.NO_PERIODIC, None
            return
        wanted = Periodic.FAST_PERIODIC if self._partner_fast else Periodic.SLOW_PERIODIC
        before, expired = self.periodic, self._periodic_timer is not None and now >= self._periodic_timer
        if expired or (before is Periodic.SLOW_PERIODIC and wanted is Periodic.FAST_PERIODIC):
            self._ntt = True  # PERIODIC_TX
        elif wanted is before:
            return
        self.periodic = wanted
        due = now + (FAST_PERIODIC_NS if wanted is Periodic.FAST_PERIODIC else SLOW_PERIODIC_NS)
        if self._beat_ns is not None and self.mux is Mux.COLLECTING_DISTRIBUTING:
            due -= min((due - self._beat_ns) % FAST_PERIODIC_NS, TOLERANCE_NS)
        self._periodic_timer = due

    def _held_until(self) -> int | None:
        """Return when the rate limit allows the next LACPDU; None when it allows one at once."""
        return self._sent[0] + FAST_PERIODIC_NS if len(self._sent) == MAX_PDUS_PER_FAST_PERIOD else None


def _parameters(info: PortInfo) -> tuple[int, str, int, int, int]:
    return info.system_priority, info.system, info.key, info.port_priority, info.port


def _identity(info: PortInfo) -> tuple[int, str, int, int, int, bool]:
    """Return the parameters that must stay equal for a port to keep its place in a LAG."""
    return (*_parameters(info), PortState.AGGREGATION in info.state)
