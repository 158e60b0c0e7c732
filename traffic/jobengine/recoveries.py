"""Recovery of a worker's failed queue pairs, at both of their ends. PURE.

    sender --alive, alive, ...--> receiver: restored --acknowledged--> sender: restored --done--> receiver

The timing is in ``traffic.transport.port_recovery``. These notes are packets (SEND with immediate) of an unreliable
queue pair, UC or UD, that runs alongside each queue pair, on its present path. The content of a note is in its
immediate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from hpn.traffic.flows.flow import recovery_qpns
from hpn.traffic.jobengine.setup import Incarnation, QueuePair, Recovered
from hpn.traffic.transport.port_recovery import Answerer, PortRecovery, Prober, ProberState
from hpn.traffic.transport.probe_transport import PROBE_TRANSPORTS

_KIND_SHIFT, _LIFE_SHIFT = 28, 24
_LIVES = 1 << _KIND_SHIFT - _LIFE_SHIFT
_NUMBER_MASK = (1 << _LIFE_SHIFT) - 1


class Note(IntEnum):
    """Kind of a note, in the top bits of its immediate; then come the job's incarnation (4 bits) and a number (24)."""

    ALIVE = 1
    ACKNOWLEDGED = 2
    DONE = 3


class Notes(Protocol):
    """Output for notes."""

    def note(self, pair: QueuePair, immediate: int, to_responder: bool, datagram: bool) -> None:
        """Send one note, by the path of the queue pair's data or of its acknowledgements; over UD or UC."""


class Recoveries:
    """Recoveries of one worker in one incarnation of the job.

    ``restore`` creates a new end of a queue pair, the responder's if its flag is set; ``say`` reports to the engine.
    """

    def __init__(
        self,
        ends: tuple[Sequence[QueuePair], Sequence[QueuePair]],
        policy: PortRecovery | None,
        life: Incarnation,
        notes: Notes,
        restore: Callable[[QueuePair, bool], None],
        say: Callable[[Recovered], None],
    ) -> None:
        """Create the recoveries. ``ends``: pairs with a local requester, and with a local responder. No ``policy``:
        none returns."""
        senders, receivers = ends
        self._pairs = {recovery_qpns(pair.flow.id)[0]: pair for pair in senders}
        self._answering = {recovery_qpns(pair.flow.id)[1]: pair for pair in receivers}
        self._life = life.number % _LIVES
        self._notes = notes
        self._restore = restore
        self._say = say
        self._policy = policy
        self._datagrams = policy is not None and PROBE_TRANSPORTS[policy.over].datagrams
        self._probers: dict[int, Prober] = {}
        self._answerers: dict[int, Answerer] = {}

    def begin(self, pair: QueuePair, now_ns: int) -> None:
        """Begin the recovery of a local requester's failed queue pair."""
        if self._policy is None:
            return
        self._probers[recovery_qpns(pair.flow.id)[0]] = Prober(self._policy, now_ns)

    def end(self) -> None:
        """End all recoveries, as the job has failed."""
        self._probers.clear()
        self._answerers.clear()

    def next_ns(self) -> int | None:
        """Return the time at which ``tick`` is due."""
        due = (prober.deadline_ns() for prober in self._probers.values())
        return min((at for at in due if at is not None), default=None)

    def tick(self, now_ns: int) -> None:
        """Advance time."""
        for qpn, prober in self._probers.items():
            pair = self._pairs[qpn]
            for number in prober.on_timer(now_ns):
                self._send(pair, Note.ALIVE, number, to_responder=True)
        for qpn in [qpn for qpn, prober in self._probers.items() if prober.state is ProberState.FAILED]:
            del self._probers[qpn]
            self._say(Recovered(self._pairs[qpn].flow.id, now_ns, False))

    def on_note(self, qpn: int, immediate: int, now_ns: int) -> bool:
        """Handle a note for a local end; return False if none has that number, or it is of an earlier incarnation."""
        kind, number = immediate >> _KIND_SHIFT, immediate & _NUMBER_MASK
        if immediate >> _LIFE_SHIFT & _LIVES - 1 != self._life:
            return False
        if kind == Note.ACKNOWLEDGED and qpn in self._probers:
            self._acknowledged(qpn, now_ns)
        elif kind == Note.ALIVE and qpn in self._answering:
            self._alive(qpn, number, now_ns)
        elif kind == Note.DONE and qpn in self._answerers:
            self._answerers[qpn].on_done()
        else:
            return False
        return True

    def _alive(self, qpn: int, number: int, now_ns: int) -> None:
        pair = self._answering[qpn]
        if self._policy is None:
            return
        if self._answerers.setdefault(qpn, Answerer(self._policy)).on_alive(number, now_ns):
            self._restore(pair, True)
            self._send(pair, Note.ACKNOWLEDGED, 0, to_responder=False)

    def _acknowledged(self, qpn: int, now_ns: int) -> None:
        pair = self._pairs[qpn]
        if self._probers[qpn].on_acknowledged():
            self._restore(pair, False)
            self._send(pair, Note.DONE, 0, to_responder=True)
            self._say(Recovered(pair.flow.id, now_ns, True))

    def _send(self, pair: QueuePair, kind: Note, number: int, *, to_responder: bool) -> None:
        immediate = kind << _KIND_SHIFT | self._life << _LIFE_SHIFT | number
        self._notes.note(pair, immediate, to_responder, self._datagrams)
