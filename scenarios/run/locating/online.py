"""Location of faults while a drill's streams run, and the drain of what is located (``locate:``).

Changes when a drill reacts to an answer in another way. What is drained stays so until the end of the drill: nothing
crosses it any more, so nobody can tell whether it is well again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hpn.failover.locating.draining import Decision, decide
from hpn.failover.locating.live import LiveLocation
from hpn.failover.locating.parts import Suspect, ends_of
from hpn.failover.locating.rounds import STEP_NS, Round
from hpn.failover.locating.seen import Accused
from hpn.scenarios.drill.locate_section import Act, Locating
from hpn.scenarios.run.batching import Gathering
from hpn.scenarios.run.locating.follower import Follower
from hpn.scenarios.run.traffic_on_lab import LabTraffic
from hpn.testbed.errors import HpnError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.lab.breaking.draining import drain, rebind, unbind, undrain
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.path_changes import on_path_changes
from hpn.testbed.routing.pathcontrol.policies import OFF
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.flows.path_search import Direction
from hpn.traffic.workers.messages import Progress


class OnlineLocation:
    """Location during one run: ``begin`` with its traffic, ``end`` with it, ``heal`` afterwards."""

    def __init__(self, lab: Lab, asked: Locating) -> None:
        self._lab, self._asked = lab, asked
        self._traffic: LabTraffic | None = None
        self._follower: Follower | None = None
        self._live: LiveLocation | None = None
        self._again = Gathering(self._look)
        self._quiet: Callable[[], None] | None = None
        self._told: Suspect | None = None
        self._stood = 0  # rounds in which it was accused first
        self._decided: set[Suspect] = set()
        self._undo: dict[str, Callable[[], None]] = {}  # by drained link, oldest first

    def hear(self, worker: int, news: Progress) -> None:
        """Take a worker's progress."""
        if self._follower is not None:
            self._follower.hear(worker, news)

    async def begin(self, traffic: LabTraffic, start_ns: int) -> None:
        """Locate from ``start_ns`` on, when the traffic starts."""
        fabric = self._lab.fabric
        hosts = {flow.id: fabric.nic(flow.src_nic).host for flow in traffic.flows}
        self._traffic, self._live = traffic, LiveLocation(ends_of(fabric), hosts, self._asked.method)
        await self._look(set())
        self._quiet = on_path_changes(self._lab, self._changed)
        self._follower = Follower(self._live, traffic.flows, self._take)
        self._follower.begin(start_ns)

    def end(self) -> None:
        """Stop listening."""
        self._follower = None
        if self._quiet is not None:
            self._quiet()
            self._quiet = None
            self._again.stop()

    def heal(self) -> None:
        """Put every drained link back, last first. HpnError, after all of them, if one is refused."""
        refused: HpnError | None = None
        while self._undo:
            link, undo = self._undo.popitem()
            try:
                undo()
            except HpnError as error:
                refused = refused or error
            else:
                self._say("returned", link)
        if refused is not None:
            raise refused

    def _changed(self, at_ns: int) -> None:
        if self._live is not None:
            self._live.changed(at_ns)
            self._again.add(0)

    async def _look(self, _changes: set[int]) -> None:
        if self._live is not None and self._traffic is not None:
            paths = self._traffic.paths_now()
            self._live.know(now_ns(), paths)

    def _take(self, found: Round) -> None:
        first = found.accused[0] if found.accused else None
        if (None if first is None else first.suspect) == self._told:
            self._stood += 1
        else:
            self._stood = 1
            if first is None:
                self._say("acquitted", str(self._told))
            else:
                self._say("accused", str(first.suspect), **_figures(first))
            self._told = None if first is None else first.suspect
        if self._asked.act is not Act.NOTHING and self._stood * STEP_NS >= self._asked.hold_ns:
            self._act(found.accused)

    def _act(self, accused: tuple[Accused, ...]) -> None:
        """Take out what stands first, or say once why not."""
        if not accused or accused[0].suspect in self._decided:
            return
        self._decided.add(accused[0].suspect)
        fabric = self._lab.fabric
        rebinds = self._asked.act is Act.REBIND
        do, undo = (rebind, unbind) if rebinds else (drain, undrain)
        decision = decide(
            *(fabric, accused[0], self._loads(), self._undo),
            senders_follow=self._senders_follow,
            moves_arrivals=not rebinds,
        )
        if not decision.drains:
            self._say("left", decision.link, why=decision.why, **_costs(decision))
            return
        link = fabric.link(decision.link)
        self._undo[link.name] = lambda: undo(self._lab, link)
        try:
            do(self._lab, link)
        except HpnError as error:
            del self._undo[link.name]
            self._say("left", link.name, why=str(error), **_costs(decision))
            return
        self._say("drained", link.name, **_figures(accused[0]), **_costs(decision))

    @property
    def _senders_follow(self) -> bool:
        """True if what is sent to a NIC leaves a plane when the NIC does: path control sees to it."""
        controlled = self._lab.fabric.spec.path_control.chosen.name != OFF
        return controlled and self._traffic is not None and self._traffic.controlled

    def _loads(self) -> dict[Direction, float]:
        """Return the load of each link and direction by the streams' present paths, in bit/s."""
        found: Counter[Direction] = Counter()
        if self._traffic is None or self._live is None:
            return {}
        rates = {flow.id: flow.rate_pps * 8 * wire_bytes(flow.path_mtu) for flow in self._traffic.flows}
        for flow, ways in self._live.present():
            for way in ways:
                found[way] += int(rates[flow])
        return dict(found)

    def _say(self, what: str, subject: str, **detail: str | float) -> None:
        self._lab.emit(Event(now_ns(), EventKind.LOCATE, "", subject, what, detail))


def _figures(accused: Accused) -> dict[str, float]:
    return {"loss": round(accused.loss, 6), "confidence": round(accused.confidence, 4)}


def _costs(decision: Decision) -> dict[str, float]:
    return {"leaving": round(decision.leaving, 6), "draining": round(decision.draining, 6)}
