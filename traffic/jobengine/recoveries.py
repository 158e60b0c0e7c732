"""The failed queue pairs of a worker on their way back, at both of their ends. PURE.

    sender --alive, alive, ...--> receiver: restored --acknowledged--> sender: restored --done--> receiver

When is ``traffic.transport.port_recovery``. These notes are packets of an unreliable connection (UC SEND with
immediate) that each queue pair has beside it, on the path that it has; what they say is in the immediate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from hpn.traffic.flows.flow import recovery_qpns
from hpn.traffic.jobengine.setup import Life, QueuePair, Recovered
from hpn.traffic.transport.port_recovery import Answerer, PortRecovery, Prober, ProberState

_KIND_SHIFT, _LIFE_SHIFT = 28, 24
_LIVES = 1 << _KIND_SHIFT - _LIFE_SHIFT
_NUMBER_MASK = (1 << _LIFE_SHIFT) - 1


class Note(IntEnum):
    """What an immediate says first; then come the job's life (4 bits) and a number (24)."""

    ALIVE = 1
    ACKNOWLEDGED = 2
    DONE = 3


class Notes(Protocol):
    """Puts notes on the wire."""

    def note(self, pair: QueuePair, immediate: int, to_responder: bool) -> None:
        """One note, by the path of the queue pair's data or of its acknowledgements."""


class Recoveries:
    """Of one worker in one life of the job.

    ``restore`` makes a new end of a queue pair: the responder's, if that is asked for; ``say`` tells the engine.
    """

    def __init__(
        self,
        ends: tuple[Sequence[QueuePair], Sequence[QueuePair]],
        policy: PortRecovery | None,
        life: Life,
        notes: Notes,
        restore: Callable[[QueuePair, bool], None],
        say: Callable[[Recovered], None],
    ) -> None:
        """``ends``: queue pairs whose requester is here, and those whose responder is. No ``policy``: none returns."""
        senders, receivers = ends
        self._pairs = {recovery_qpns(pair.flow.id)[0]: pair for pair in senders}
        self._answering = {recovery_qpns(pair.flow.id)[1]: pair for pair in receivers}
        self._life = life.number % _LIVES
        self._notes = notes
        self._restore = restore
        self._say = say
        self._policy = policy
        self._probers: dict[int, Prober] = {}
        self._answerers: dict[int, Answerer] = {}

    def begin(self, pair: QueuePair, now_ns: int) -> None:
        """A queue pair of a requester here was given up."""
        if self._policy is None:
            return
        self._probers[recovery_qpns(pair.flow.id)[0]] = Prober(self._policy, now_ns)

    def end(self) -> None:
        """The job is dead."""
        self._probers.clear()
        self._answerers.clear()

    def next_ns(self) -> int | None:
        """When ``tick`` is due."""
        due = (prober.deadline_ns() for prober in self._probers.values())
        return min((at for at in due if at is not None), default=None)

    def tick(self, now_ns: int) -> None:
        """Let time pass."""
        for qpn, prober in self._probers.items():
            pair = self._pairs[qpn]
            for number in prober.on_timer(now_ns):
                self._send(pair, Note.ALIVE, number, to_responder=True)
        for qpn in [qpn for qpn, prober in self._probers.items() if prober.state is ProberState.FAILED]:
            del self._probers[qpn]
            self._say(Recovered(self._pairs[qpn].flow.id, now_ns, False))

    def on_note(self, qpn: int, immediate: int, now_ns: int) -> bool:
        """A note for an end here; False when there is none with that number, or it is of an earlier life."""
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
        self._notes.note(pair, immediate, to_responder)
