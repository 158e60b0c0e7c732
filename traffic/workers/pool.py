"""Pool of the worker processes that carry a lab's queue pairs, driven from the supervisor's event loop.

Changes when the start, commands, supervision or end of workers change; what they carry is up to a subclass.
"""

from __future__ import annotations

import asyncio
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from hpn.testbed.errors import HpnError, MachineError
from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.flows.flow import SPORT_MAX, SPORT_MIN, FlowSpec
from hpn.traffic.workers.messages import (
    Assignment,
    Begin,
    Failed,
    Finish,
    Message,
    Move,
    Moved,
    MovedAll,
    Moves,
    NicSpec,
    Progress,
    QpError,
    Ready,
    Stop,
    Stopped,
)
from hpn.traffic.workers.process import WorkerProcess

T = TypeVar("T", bound=Message)

MOVES_AT_ONCE = 64
"""Most moves in one message: the first of many need not wait until all are known."""

_SOFTNET = Path("/proc/net/softnet_stat")


class WorkerPool(ABC):
    """Workers that carry ``flows``, one per queue pair, for the NICs assigned by ``placed``; records go to ``out``.

    ``failed`` is an asyncio future that gets a MachineError as soon as a worker dies or gives up. Every waiting method
    raises it too. ``progress`` is called about ten times a second.
    """

    MODULE: str
    """Module that a worker process runs."""
    REPORT: type[Message]
    """Type of its final message."""

    def __init__(
        self,
        flows: Sequence[FlowSpec],
        placed: Mapping[str, int],
        namespaces: Mapping[str, NetNs],
        out: Path,
        sink: EventSink,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._flows = {flow.id: flow for flow in flows}
        self._namespaces = namespaces
        self._out = out
        self._sink = sink
        self._progress = progress
        numbers = {worker: index for index, worker in enumerate(sorted(set(placed.values())))}
        self._place = {nic: numbers[worker] for nic, worker in placed.items()}
        self._workers: dict[int, WorkerProcess] = {}
        self._answers: dict[tuple[type[Message], int], asyncio.Future[Message]] = {}
        self._moves: dict[tuple[int, bool], list[asyncio.Future[int]]] = {}
        self._waiting: dict[int, list[Move]] = {}  # moves that are not sent yet, by worker
        self._sent: dict[int, int] = {}
        self._received: dict[int, int] = {}
        self._softnet_before = 0
        self._still = False
        self._heard_at: dict[int, int] = {}  # time of each worker's last progress message

    @abstractmethod
    def _setups(self) -> Sequence[Assignment]:
        """Return the first message for each worker, in the order of their numbers."""

    async def start(self, timeout_s: float = 60.0) -> Sequence[Ready]:
        """Start the workers and wait until all their sockets are bound. MachineError otherwise."""
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.failed.add_done_callback(_seen)
        self._out.mkdir(exist_ok=True)
        setups = self._setups()
        for setup in setups:
            fds = {nic.namespace_fd for nic in setup.nics}
            process = WorkerProcess(self.MODULE, setup.index, self._out, fds, self._heard, self._died)
            self._workers[setup.index] = process
        for setup in setups:
            await self._workers[setup.index].send_all(setup)
        return await self._all(Ready, timeout_s)

    def begin(self, at_ns: int) -> None:
        """Send from ``at_ns`` on (CLOCK_MONOTONIC; at least 50 ms ahead); replacement flows only after ``replace``."""
        self._softnet_before = softnet_drops()
        self._tell_all(Begin(at_ns))

    def move(self, flow: int, sport: int) -> asyncio.Future[int]:
        """Send the flow's data from source port ``sport`` from now on; the future holds the time of the change.

        The command leaves with all others of this turn of the event loop, or with the first MOVES_AT_ONCE of them. The
        future gets a MachineError when the port is not available; the flow then keeps its old one. ValueError for a
        port outside SPORT_MIN .. SPORT_MAX.
        """
        return self._move(Move(flow, sport, ack=False), self._flows[flow].src_nic)

    def move_ack(self, flow: int, sport: int) -> asyncio.Future[int]:
        """Do the same for the flow's acknowledgements, at the responder's NIC."""
        return self._move(Move(flow, sport, ack=True), self._flows[flow].dst_nic)

    async def stop_sending(self, timeout_s: float = 5.0) -> None:
        """Stop all senders; return when the last packet has left. No queue pair errors from then on."""
        self._tell_all(Stop())
        await self._all(Stopped, timeout_s)

    async def _reports(self, kind: type[T], quiet_s: float, limit_s: float, timeout_s: float) -> list[T]:
        """Stop, receive until ``quiet_s`` without packets, write all, end the workers; return their final messages."""
        await self.stop_sending()
        self._tell_all(Finish(round(quiet_s * 1e9), round(limit_s * 1e9)))
        reports = await self._all(kind, limit_s + timeout_s)
        for worker in self._workers.values():
            await worker.ended(timeout_s)
        return reports

    def _lost_by_machine(self) -> int:
        """Return the packets that the machine has dropped between two interfaces since ``begin``."""
        return softnet_drops() - self._softnet_before

    async def close(self) -> None:
        """End every remaining worker, whatever it is doing. The second call is a no-op."""
        for worker in self._workers.values():
            await worker.kill()

    def stand_still(self, still: bool) -> None:
        """Pause all workers, or resume them."""
        self._still = still
        for worker in self._workers.values():
            worker.signal(signal.SIGSTOP if still else signal.SIGCONT)

    def give_up(self, error: HpnError) -> None:
        """Fail with this error, as when a worker dies: every waiting method raises it."""
        if not self.failed.done():
            self.failed.set_exception(error)
            self._fail_moves(error)

    def pids(self) -> dict[int, int]:
        """Return the process IDs of running workers, by number; none while the workers are paused."""
        return (
            {}
            if self._still
            else {index: worker.pid for index, worker in self._workers.items() if worker.pid is not None}
        )

    def silent_since(self, at_ns: int) -> list[int]:
        """Return the workers that have begun and sent no message after ``at_ns``."""
        return [worker for worker, heard in self._heard_at.items() if heard < at_ns]

    def _nics(self, worker: int) -> tuple[NicSpec, ...]:
        """Return the NICs that a worker owns."""
        nics = {f.src_nic: f.src_ip for f in self._flows.values()} | {f.dst_nic: f.dst_ip for f in self._flows.values()}
        return tuple(
            NicSpec(nic, ip, self._namespaces[nic].fd) for nic, ip in nics.items() if self._place[nic] == worker
        )

    def _move(self, move: Move, nic: str) -> asyncio.Future[int]:
        if not SPORT_MIN <= move.sport <= SPORT_MAX:
            raise ValueError(f"{move.sport} is no RoCEv2 source port")
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_seen)
        if self.failed.done():
            future.set_exception(self.failed.exception() or MachineError("the traffic engine has failed"))
            return future
        self._moves.setdefault((move.flow, move.ack), []).append(future)
        worker = self._place[nic]
        waiting = self._waiting.setdefault(worker, [])
        waiting.append(move)
        if len(waiting) == 1:
            asyncio.get_running_loop().call_soon(self._send_moves, worker)
        elif len(waiting) == MOVES_AT_ONCE:
            self._send_moves(worker)
        return future

    def _send_moves(self, worker: int) -> None:
        """Send the waiting moves, if any, in one message: path control moves hundreds at once."""
        moves = self._waiting.pop(worker, None)
        if not moves:
            return
        try:
            self._workers[worker].send(Moves(tuple(moves)))
        except MachineError as error:
            self._fail(str(error))

    def _tell_all(self, message: Message) -> None:
        for index, worker in self._workers.items():
            self._send_moves(index)
            worker.send(message)

    async def _all(self, kind: type[T], timeout_s: float) -> list[T]:
        """Return the answer of that type from every worker. MachineError when one fails or does not answer in time."""
        answers = [self._answer(kind, index) for index in self._workers]
        if not answers:
            return []  # there is nothing to carry
        waiting = asyncio.ensure_future(asyncio.wait(answers))
        await asyncio.wait((waiting, self.failed), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if all(answer.done() for answer in answers):
            return [message for answer in answers if isinstance(message := answer.result(), kind)]
        waiting.cancel()
        why = self.failed.exception() if self.failed.done() else None  # read before closing, which affects it
        await self.close()
        if why is not None:
            raise why
        silent = ", ".join(str(i) for i, answer in zip(self._workers, answers, strict=True) if not answer.done())
        raise MachineError(
            f"traffic worker {silent} did not say {kind.__name__} within {timeout_s:g} s; is the machine overloaded?"
        )

    def _answer(self, kind: type[Message], worker: int) -> asyncio.Future[Message]:
        key = (kind, worker)
        if key not in self._answers:
            self._answers[key] = asyncio.get_running_loop().create_future()
        return self._answers[key]

    def _heard(self, worker: int, message: Message) -> None:
        match message:
            case Progress():
                self._heard_at[worker] = now_ns()
                self._sent.update(message.sent)
                self._received.update(message.received)
                if worker == 0 and self._progress is not None:
                    self._progress(Progress(message.at_ns, dict(self._sent), dict(self._received)))
            case QpError():
                self._sink(self._qp_event(message))
            case MovedAll(moved):
                for each in moved:
                    self._moved(each)
            case Failed(why):
                self._fail(f"traffic: {why}")
            case _:
                answer = self._answer(type(message), worker)
                if not answer.done():
                    answer.set_result(message)

    def _moved(self, message: Moved) -> None:
        future = self._moves[(message.flow, message.ack)].pop(0)
        if future.done():  # cancelled, or failed with the engine
            return
        if message.refused:
            future.set_exception(MachineError(f"{self._flows[message.flow].name} stays where it is: {message.refused}"))
        else:
            future.set_result(message.at_ns)

    def _qp_event(self, error: QpError) -> Event:
        flow = self._flows[error.flow]
        detail: dict[str, str | int | float] = {
            "flow": flow.id,
            "reason": "retry exceeded",
            "psn": error.psn,
            "outstanding": error.outstanding,
            "ib_timeout": flow.ib_timeout,
            "retry_count": flow.retry_count,
        }
        return Event(error.at_ns, EventKind.QP, self._namespaces[flow.src_nic].name, flow.name, "error", detail)

    def _died(self, worker: int, why: str) -> None:
        """Handle the end of a worker process, which is normal after its report."""
        if self._answer(self.REPORT, worker).done():
            return
        if not self.failed.done():
            self._sink(Event(now_ns(), EventKind.DAEMON, "traffic", f"worker-{worker}", "died", {"why": why}))
        self._fail(why)

    def _fail(self, why: str) -> None:
        self.give_up(MachineError(why))

    def _fail_moves(self, error: HpnError) -> None:
        for futures in self._moves.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)


def softnet_drops() -> int:
    """Return the packets dropped between interfaces because a CPU's backlog was full: machine-wide, since boot."""
    return sum(int(line.split()[1], 16) for line in _SOFTNET.read_text().splitlines())


def _seen(future: asyncio.Future[None] | asyncio.Future[int]) -> None:
    """Retrieve the exception, so that asyncio does not warn: waiting for this future is optional."""
    if not future.cancelled():
        future.exception()
