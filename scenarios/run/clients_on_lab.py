"""Client on a running lab: its processes in the hosts, from start to end, and the steps that they report.

Changes when something else is done for all clients. Clients themselves are defined in ``traffic.client``.
"""

from __future__ import annotations

import asyncio
import os
import zlib
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from hpn.failover.analysis.client import ClientFacts, RankLog
from hpn.failover.analysis.job import JobFacts, SpanFact
from hpn.scenarios.run.client_ends import WORDS_LENGTH, ClientEnds, last_words
from hpn.scenarios.run.client_process import RunningClient
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.files.document import shorten
from hpn.testbed.files.units import format_duration, format_size
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.lab.wire import NETNS_DIR
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.ledger import Ledger
from hpn.traffic.client.lines import ClientStep, GaveUp, Misread, Output, Ready, Said
from hpn.traffic.client.log import FOLDER, name_of
from hpn.traffic.client.plan import ClientPlan, ClientProcess, Starts
from hpn.traffic.client.ranks import ranks_of
from hpn.traffic.collectives.program import ITERATION

_RENDEZVOUS = Path("/run/hpn-client")
_GRACE_S = 2.0
"""Time from SIGTERM to SIGKILL."""
_MOST_EVENTS = 100
"""Limit per process, for lines that are no steps."""
_EVENT_LENGTH = 200
_ARRIVAL_NS = 1_000_000
"""Accuracy of a line's arrival time when the loop is not delayed; a reported time has at best one microsecond."""
_TOLD_NS = 1_000


_NOTHING = ClientPlan((), Starts.BEGIN, ())


class LabClients:
    """Client of one drill; no-op if it has none. Use: start, begin, terminate, end; always ``close``.

    ``polls``: True if it may poll without sleeping although time is virtual (``Confined.order``).
    """

    def __init__(
        self,
        fabric: Fabric,
        namespaces: Mapping[str, NetNs],
        emit: EventSink,
        client: Client | None,
        site: Site,
        *,
        polls: bool,
    ) -> None:
        self._namespaces = namespaces
        self._emit = emit
        self._polls = polls
        self._key, self._deadline_ns = ("", 0) if client is None else (client.KEY, client.deadline)
        ranks = () if client is None else ranks_of(fabric, client.ranks, client.per, client.rail)
        self._ranks = {rank.rank: rank for rank in ranks}
        self.plan = _NOTHING if client is None else client.plan(ranks, site)
        self._ledger = Ledger(self.plan.reporting)
        self._running: list[RunningClient] = []
        self._ready: set[int] = set()
        self._changed = asyncio.Event()
        self._events: Counter[int] = Counter()
        self._gave_up: dict[int, tuple[int, str]] = {}
        self._misread = 0
        self._first_misread = ""
        self._begin_ns = self._until_ns = 0
        self._logs: list[RankLog] = []

    async def start(self) -> None:
        """Start every process; return when all are ready. MachineError names one that is late or ends."""
        if not self.plan.processes:
            return
        _RENDEZVOUS.mkdir(mode=0o755)
        for at, process in enumerate(self.plan.processes):
            space = self._namespaces[process.host]
            heard = partial(self._heard, at)
            self._running.append(RunningClient(process, space, self.plan.adapter(process), heard, self._gone))
        if self.plan.starts is Starts.BEGIN:
            return
        for running in self._running:
            running.run(self._environment(running.process), _RENDEZVOUS, batch=self._polls)
        await self._all_ready()

    def begin(self, at_ns: int, until_ns: int) -> None:
        """Send the run's start and end times to the clients, or start them."""
        self._begin_ns, self._until_ns = at_ns, until_ns
        self._ledger.run(at_ns, until_ns)
        for running in self._running:
            if self.plan.starts is Starts.READY:
                running.tell(f"begin {at_ns} until {until_ns}\n")
            else:
                env = {**self._environment(running.process), "HPN_UNTIL_NS": str(until_ns)}
                running.run(env, _RENDEZVOUS, at_ns, batch=self._polls)

    def terminate(self) -> None:
        """Send every process the request to terminate: the run is over."""
        if self._running:
            self._until_ns = min(self._until_ns, now_ns())
        for running in self._running:
            running.terminate()

    async def end(self) -> None:
        """Wait until all have ended; kill those that take too long."""
        deadline_ns = now_ns() + round(_GRACE_S * 1e9) if self._running else 0
        while any(running.ended is None for running in self._running) and now_ns() < deadline_ns:
            await self._change((deadline_ns - now_ns()) / 1e9)
        self._kill()

    def close(self, folder: Path) -> None:
        """Kill what is still running and write the output of each process to ``clients/`` in ``folder``."""
        self._kill()
        if not self._running:
            return
        place = folder / FOLDER
        place.mkdir(exist_ok=True)
        first_ns = self._begin_ns or now_ns()
        for running in self._running:
            rank, content = running.process.ranks[0], running.log.written(first_ns)
            (place / name_of(rank)).write_bytes(content)
            self._logs.append(RankLog(rank, len(content), zlib.crc32(content)))

    def facts(self, lag_ns: int) -> JobFacts | None:
        """Return the facts for the analysis, once closed; ``lag_ns``: the longest delay of this loop."""
        if not self._running:
            return None
        ledger = self._ledger
        ends = ClientEnds(self._running, self._gave_up, self._until_ns)
        ranks = (
            ends.rank(self._ranks[rank], rank, ledger.count(rank), at)
            for at, each in enumerate(self._running)
            for rank in each.process.ranks
        )
        return JobFacts(
            spans={rank: self._spans(rank) for rank in self.plan.reporting},
            queue_pairs=0,
            tick_ns=max(ledger.late_ns, _TOLD_NS if ledger.told_times else max(_ARRIVAL_NS, lag_ns)),
            packets=0,
            packets_again=0,
            counters={},
            deaths=tuple(ends.deaths())[:1],
            client=ClientFacts(
                key=self._key,
                ranks=tuple(sorted(ranks, key=lambda end: end.rank)),
                reporting=len(self.plan.reporting),
                told_times=ledger.told_times,
                compared=ledger.compared,
                misread=self._misread,
                first_misread=self._first_misread,
                logs=tuple(self._logs),
            ),
        )

    def records(self) -> bytes:
        """Return the steps as SPAN records."""
        return self._ledger.packed()

    def _kill(self) -> None:
        for running in self._running:
            running.kill()

    async def _all_ready(self) -> None:
        deadline_ns = now_ns() + self._deadline_ns
        while True:
            for at, running in enumerate(self._running):
                who, words = f"client {self._key}: {running.name}", f"; its last words: {last_words(running)}"
                if at in self._gave_up:
                    raise MachineError(f"{who} gave up before the run: {self._gave_up[at][1]}")
                if running.ended is not None:
                    raise MachineError(f"{who} ended before it was ready ({running.ended.text}){words}")
                if at not in self._ready and now_ns() >= deadline_ns:
                    limit = format_duration(self._deadline_ns)
                    raise MachineError(
                        f"{who} did not say 'hpn ready' within {limit}{words}; see docs/clients.md, or"
                        " raise workload.client.deadline"
                    )
            if len(self._ready) == len(self._running):
                return
            await self._change(max(0.0, (deadline_ns - now_ns()) / 1e9))

    async def _change(self, timeout_s: float) -> None:
        """Wait until a process is ready, has given up or has ended, at most ``timeout_s``."""
        self._changed.clear()
        waiting = asyncio.ensure_future(self._changed.wait())
        await asyncio.wait({waiting}, timeout=timeout_s)
        waiting.cancel()

    def _environment(self, process: ClientProcess) -> Mapping[str, str]:
        rank = self._ranks[process.ranks[0]]
        return {
            **os.environ,
            "HPN_RANK": str(rank.rank),
            "HPN_WORLD_SIZE": str(len(self._ranks)),
            "HPN_HOST": rank.host,
            "HPN_NIC": rank.nic,
            "HPN_ADDRESS": rank.ip,
            "HPN_INTERFACE": rank.interface,
            "HPN_ADDRESSES": ",".join(each.ip for each in self._ranks.values()),
            "HPN_HOSTS": ",".join(each.host for each in self._ranks.values()),
            "HPN_RENDEZVOUS": str(_RENDEZVOUS),
            "HPN_NAMESPACES": str(NETNS_DIR),
            **process.env,
        }

    def _heard(self, at: int, running: RunningClient, said: Said, at_ns: int) -> None:
        match said:
            case ClientStep():
                why = self._ledger.take(running.process.ranks, said, at_ns)
                if why:
                    self._misread_line(at, running, f"step {said.number}", why, at_ns)
            case Ready():
                if at not in self._ready:
                    self._ready.add(at)
                    self._note(running, "ready", at_ns)
                self._changed.set()
            case GaveUp(text):
                self._gave_up.setdefault(at, (at_ns, text or "it does not say why"))
                self._note(running, "error", at_ns, text)
                self._changed.set()
            case Misread(text, why):
                self._misread_line(at, running, text, why, at_ns)
            case Output(text):
                if text.strip():
                    self._note_bounded(at, running, "said", at_ns, text)

    def _misread_line(self, at: int, running: RunningClient, text: str, why: str, at_ns: int) -> None:
        line = f"{shorten(text, WORDS_LENGTH)} of {running.name}: {why}"
        self._misread += 1
        self._first_misread = self._first_misread or line
        self._note_bounded(at, running, "misread", at_ns, line)

    def _gone(self, running: RunningClient) -> None:
        if running.ended is not None and running.ended_at_ns is not None:
            self._note(running, "ended", running.ended_at_ns, running.ended.text)
        self._changed.set()

    def _note_bounded(self, at: int, running: RunningClient, what: str, at_ns: int, text: str) -> None:
        self._events[at] += 1
        if self._events[at] <= _MOST_EVENTS:
            self._note(running, what, at_ns, text)
        elif self._events[at] == _MOST_EVENTS + 1:
            self._note(running, what, at_ns, "more lines: they are in clients/ of the run folder")

    def _note(self, running: RunningClient, what: str, at_ns: int, text: str = "") -> None:
        detail = {"text": shorten(text, _EVENT_LENGTH, quoted=False)} if text else {}
        rank = f"rank {running.process.ranks[0]}"
        self._emit(Event(at_ns, EventKind.CLIENT, running.process.host, rank, what, detail))

    def _spans(self, rank: int) -> tuple[SpanFact, ...]:
        of = self._ledger.doings(rank)
        told = (SpanFact(_label(kind, size), kind, size, len(self._ranks)) for kind, size in of)
        return (SpanFact(ITERATION, ITERATION, 0, len(self._ranks)), *told)


def _label(kind: str, size_bytes: int) -> str:
    return f"{kind} {format_size(size_bytes)}" if size_bytes else kind
