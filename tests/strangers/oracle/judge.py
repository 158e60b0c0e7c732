"""Why each limit of a run broke, which queue pairs had to live, and what cannot be. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.strangers.oracle.story import AtEdge, Edge, Flow, Story

CONGESTION, NO_PATH, NO_CONTROL = "congestion", "no path left", "no path control"
DETECTION, CONVERGENCE, FAILOVER = "detection time", "convergence time", "failover"
NO_MOVE = "nothing to move"
UNEXPLAINED = "unexplained"
_NO_MOVE = "no moved event"
_TOLD = {
    CONGESTION: ("congest", "offered", "overload"),
    NO_PATH: ("no path left", "no way left", "single-homed", "no other port", "only path", "one port"),
    NO_CONTROL: ("path control is off", "no path control", "without path control"),
    DETECTION: ("detection time", "nobody can know"),
    CONVERGENCE: ("convergence", "bgpd gathers"),
    FAILOVER: ("failover",),
    NO_MOVE: (_NO_MOVE,),
}
"""Words of a verdict that name a cause."""
_MS = 1_000_000
_FULL = 0.9995
"""Data for a link's whole rate leave no room for the acknowledgements that share it: its queue overflows."""
_OTHERS, _OUTSIDE = "of other flows", "outside fault windows"
_FAILOVER_MS = 100.0
"""A way that is left was found within this: what it cost is failover."""
_LOOKED_NS = 50 * _MS
"""Ways are asked 100 ms before each edge."""
_A_SWITCH_MS = {"bird": 0.0, "frr": 65.0}
"""How long a daemon keeps a withdrawal at most, in each switch that it passes: FRR's bgpd 50 ms, its zebra 10."""


@dataclass(frozen=True)
class Broken:
    """A limit that broke: what the oracle found, and whether the verdict names it."""

    text: str
    causes: Mapping[str, int]  # to the number of flows, by edge, that it explains
    told: str  # 'yes', 'another', 'nothing'
    unexplained: Sequence[str] = ()


@dataclass(frozen=True)
class Finding:
    """All of one run."""

    outcome: str
    died: int
    stranded: Sequence[str]  # dead queue pairs that path control could have moved
    broken: Sequence[Broken]
    impossible: Sequence[str]  # what the oracle says cannot be
    overloads: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # moment to directed link to share

    @property
    def defects(self) -> list[str]:
        """What makes the run fail here."""
        unexplained = (f"{each.text}: {what}" for each in self.broken for what in each.unexplained)
        wrong = (each for each in self.broken if each.told == "another")
        other = (f"{each.text}: told another cause than {', '.join(each.causes)}" for each in wrong)
        return [*(f"stranded: {each}" for each in self.stranded), *unexplained, *other, *self.impossible]

    @property
    def gaps(self) -> list[str]:
        """Limits that broke with a cause which the verdict does not name."""
        return [f"{each.text}: {', '.join(each.causes)}" for each in self.broken if each.told == "nothing"]

    def as_dict(self) -> dict[str, Any]:
        """For a JSON file."""
        return asdict(self) | {"defects": self.defects, "gaps": self.gaps}


def judge(story: Story) -> Finding:
    """Hold a run against what had to come of it."""
    dead = [flow for flow in story.flows.values() if flow.dead_ns is not None]
    causes = {flow.id: _death(story, flow) for flow in dead}
    stranded = [_stranded(story, flow) for flow in dead if causes[flow.id] == UNEXPLAINED]
    broken = [_broken(story, asked, check, causes) for asked, check in _asked(story) if check["outcome"] == "fail"]
    overloads = {edge.label: _overload(story, _look(edge)) for edge in story.edges}
    overloads["before"] = _overload(story, _first_look(story))
    return Finding(
        story.verdict["outcome"],
        len(dead),
        stranded,
        broken,
        list(_impossible(story, dead)),
        {moment: links for moment, links in overloads.items() if links},
    )


def _asked(story: Story) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each answer with what was asked; the control group is asked of every run."""
    asked = {each["text"]: each for each in story.drill["expects"]}
    control = {"metric": "packets_lost", "edge": "any", "limit": 0.0}
    return ((asked.get(check["text"], control), check) for check in story.verdict["checks"])


def _overload(story: Story, at_ns: int) -> dict[str, float]:
    return {f"{link} from {node}": round(share, 3) for (link, node), share in story.overload_at(at_ns).items()}


def _first_look(story: Story) -> int:
    """Before anything broke."""
    return min((edge.at_ns for edge in story.edges), default=story.end_ns) - _LOOKED_NS


def _look(edge: Edge) -> int:
    """Just before the next edge, when all ways have been asked."""
    return max(edge.at_ns, edge.end_ns - _LOOKED_NS)


def _death(story: Story, flow: Flow) -> str:
    """Why a queue pair died; UNEXPLAINED where it had a way that path control could have moved it to."""
    workload = story.drill["workload"]
    patience_ns = 4096 * 2 ** workload["ib_timeout"] * (workload["retry_count"] + 1)
    assert flow.dead_ns is not None
    window = flow.dead_ns - patience_ns, flow.dead_ns
    return _cause(story, flow, *window, patience_ns)


def _cause(story: Story, flow: Flow, begin_ns: int, end_ns: int, patience_ns: int = 0) -> str:
    """Why a flow was not carried for some time between two moments."""
    network = story.network
    for span in story.spans:
        if span.end_ns < begin_ns or span.begin_ns > end_ns:
            continue
        dead = story.dead_at(max(span.begin_ns, begin_ns))
        dead |= span.links
        if not network.has_way(flow.src, flow.dst, dead) or not network.has_way(flow.dst, flow.src, dead):
            return NO_PATH
        if span.found_ns > patience_ns:
            return DETECTION
        if _needs_control(story, flow, dead) and not _controlled(story):
            return NO_CONTROL
    return CONGESTION if _crowded(story, flow, begin_ns, end_ns) else UNEXPLAINED


def _needs_control(story: Story, flow: Flow, dead: frozenset[str]) -> bool:
    """Whether a port that is alive leads nowhere: planes apart, and the other end's port of that plane is gone."""
    for src, dst in ((flow.src, flow.dst), (flow.dst, flow.src)):
        for port, name in enumerate(story.network.ports[src]):
            if name not in dead and not story.network.has_way(src, dst, dead, port):
                return True
    return False


def _any_needs_control(story: Story) -> bool:
    return any(_needs_control(story, flow, span.links) for span in story.spans for flow in story.flows.values())


def _controlled(story: Story) -> bool:
    control = story.network.spec["path_control"]
    return bool(control["enabled"]) and control["policy"] != "off" and bool(story.drill["workload"]["path_control"])


def _crowded(story: Story, flow: Flow, begin_ns: int, end_ns: int) -> bool:
    """Whether a link on any of its ways, or of its acknowledgements', was offered more than it carries then."""
    moments = [edge for edge in story.edges if edge.at_ns <= end_ns and edge.end_ns >= begin_ns]
    looks = [_look(edge) for edge in moments] + [edge.at_ns - _LOOKED_NS for edge in moments]
    looks += [_first_look(story)] * (begin_ns < _first_look(story))
    looks += [begin_ns, *story.changes(begin_ns, end_ns)]
    for at_ns in looks:
        full = {step for step, bps in story.load_at(at_ns).items() if bps >= _FULL * story.capacity(step)}
        if full & set(story.network.directions(flow.src, story.taken_at(flow.id, at_ns))):
            return True
    return False


def _stranded(story: Story, flow: Flow) -> str:
    assert flow.dead_ns is not None
    after_ms = (flow.dead_ns - story.start_ns) / 1e6
    return f"{flow.name} died {after_ms:.0f} ms after the start with a way left all the time"


def _broken(story: Story, asked: Mapping[str, Any], check: Mapping[str, Any], deaths: Mapping[int, str]) -> Broken:
    found: dict[str, int] = {}
    strange: list[str] = []
    for flow, edge, seen in _offenders(story, asked, check):
        cause = _blame(story, flow, edge, seen, deaths, apart=_OUTSIDE in check["text"])
        if cause == UNEXPLAINED:
            strange.append(f"{flow.name} at {edge.label}: {seen.lost} lost, outage {seen.outage_ms:.1f} ms")
        else:
            found[cause] = found.get(cause, 0) + 1
    if _NO_MOVE in check.get("evidence", "") and not _any_needs_control(story):
        found[NO_MOVE] = len(story.flows)
    if not found and not strange:
        strange.append("no flow that lost anything explains it")
    return Broken(check["text"], found, _told(story, found), strange)


def _blame(story: Story, flow: Flow, edge: Edge, seen: AtEdge, deaths: Mapping[int, str], *, apart: bool) -> str:
    """Why a flow lost what it lost at an edge; ``apart``: outside the windows of all edges."""
    if seen.control or apart:  # only what others send can be in its way
        return CONGESTION if _crowded(story, flow, story.start_ns, story.end_ns) else UNEXPLAINED
    return deaths[flow.id] if flow.id in deaths and seen.never else _loss(story, flow, edge, seen)


def _offenders(story: Story, asked: Mapping[str, Any], check: Mapping[str, Any]) -> Iterator[tuple[Flow, Edge, AtEdge]]:
    """Flows at edges that can have broken a limit."""
    if _OUTSIDE in check["text"]:
        edge = story.edges[0]
        yield from ((flow, edge, edge.flows[flow.id]) for flow in story.flows.values() if flow.apart)
        return
    for edge in story.edges:
        if asked["edge"] not in ("any", edge.kind):
            continue
        for flow in story.flows.values():
            seen = edge.flows[flow.id]
            over = bool(seen.lost or seen.never)
            if asked["metric"] == "packets_lost":
                over = over and seen.control == (_OTHERS in check["text"])
            if asked["metric"] == "worst_outage":
                over = over and (seen.never or seen.outage_ms >= asked["limit"] / 1e6 / 2)
            if asked["metric"] == "queue_pair_deaths":
                over = flow.dead_ns is not None and edge.at_ns <= flow.dead_ns < edge.end_ns
            if over:
                yield flow, edge, seen


def _loss(story: Story, flow: Flow, edge: Edge, seen: AtEdge) -> str:
    first, last = seen.first_loss_ns or edge.at_ns, seen.last_loss_ns or edge.end_ns
    if seen.outage_ms <= _FAILOVER_MS and not seen.never:
        return CONGESTION if _crowded(story, flow, first, last) else FAILOVER
    cause = _cause(story, flow, first, last)
    if cause == UNEXPLAINED and seen.outage_ms <= _convergence_ms(story) and not seen.never:
        return CONVERGENCE
    # Sessions come back one after the other; until then the ways that are there carry what many will.
    late = edge.kind == "repair" and last <= edge.settled_ns + _FAILOVER_MS * _MS
    return CONVERGENCE if late and cause == UNEXPLAINED and not seen.never else cause


def _convergence_ms(story: Story) -> float:
    """How long a withdrawal takes at most, up and down again."""
    tiers = 5 if "core" in story.network.roles.values() else 3
    return tiers * _A_SWITCH_MS[story.network.spec["bgp"]["daemon"]] + _FAILOVER_MS


def _told(story: Story, causes: Mapping[str, int]) -> str:
    """Whether the verdict's words name one of the causes."""
    named = {cause for cause, words in _TOLD.items() if any(word in story.words for word in words)}
    if named & set(causes):
        return "yes"
    return "another" if named and causes else "nothing"


def _impossible(story: Story, dead: Sequence[Flow]) -> Iterator[str]:
    for asked, check in _asked(story):
        of_all = " of " not in check["text"]
        if (
            of_all
            and asked["metric"] == "queue_pair_deaths"
            and check["outcome"] == "pass"
            and len(dead) > asked["limit"]
        ):
            yield f"{check['text']} passes, and {len(dead)} queue pairs died"
    for flow in story.flows.values():
        yield from _unhurt(story, flow)
    yield from _walks_through_dead_links(story)


def _unhurt(story: Story, flow: Flow) -> Iterator[str]:
    """A flow that had no way and lost nothing."""
    for span in story.spans:
        long_enough = (span.end_ns - span.begin_ns) / 1e9 * flow.pps > 10
        if long_enough and not story.network.has_way(flow.src, flow.dst, span.links):
            lived = flow.dead_ns is None or flow.dead_ns > span.end_ns
            if lived and flow.lost == 0:
                yield f"{flow.name} had no way for {(span.end_ns - span.begin_ns) / 1e6:.0f} ms and lost nothing"


def _walks_through_dead_links(story: Story) -> Iterator[str]:
    """A way that is said to deliver, over a link that nobody can use."""
    for edge in story.edges:
        at_ns = _look(edge)
        known = (span for span in story.spans if span.begin_ns + span.found_ns < edge.at_ns + _MS)
        dead = story.dead_at(at_ns) & {link for span in known for link in span.links}
        for flow in story.flows.values():
            on_way = sorted(dead.intersection(story.way_at(flow.id, at_ns)))
            if on_way and (flow.dead_ns is None or flow.dead_ns > at_ns):
                yield f"{flow.name} is said to take {on_way[0]} at the end of {edge.label}, which is dead"
