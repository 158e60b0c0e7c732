"""What a run folder saw: flows, their ways at each moment, losses, deaths. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.strangers.oracle.faults import Span, spans
from tests.strangers.oracle.network import Network

_FRAMING = 58
"""Ethernet 14, IP 20, UDP 8, BTH 12, ICRC 4 bytes around a packet's payload."""


@dataclass(frozen=True)
class Flow:
    """One queue pair's data; ``dead_ns``: when it errored."""

    id: int
    name: str
    src: str
    dst: str
    bps: float
    pps: float
    dead_ns: int | None
    lost: int
    apart: int  # of these, outside the windows of all edges


@dataclass(frozen=True)
class AtEdge:
    """What a flow lost at an edge of a fault."""

    lost: int
    outage_ms: float
    control: bool
    never: bool  # it had not recovered by the end
    first_loss_ns: int | None
    last_loss_ns: int | None


@dataclass(frozen=True)
class Edge:
    """A moment at which a fault came or went, and the time until the next."""

    label: str
    kind: str
    at_ns: int
    end_ns: int
    flows: Mapping[int, AtEdge]
    settled_ns: int = 0  # when the last route changed


@dataclass(frozen=True)
class Way:
    """Where a flow's packets went when somebody asked; of a way that changed and that nobody asked yet, no links."""

    at_ns: int
    port: int | None
    links: tuple[str, ...]  # as far as they came
    arrives: bool


@dataclass(frozen=True)
class Story:
    """One run."""

    network: Network
    drill: Mapping[str, Any]
    verdict: Mapping[str, Any]
    flows: Mapping[int, Flow]
    edges: Sequence[Edge]
    spans: Sequence[Span]
    ways: Mapping[int, Sequence[Way]]  # of each flow
    start_ns: int
    end_ns: int
    words: str  # everything that the verdict says in words

    @classmethod
    def read(cls, run: Path) -> Story:
        """Of a run folder that has a verdict."""
        network, drill = Network.read(run), _json(run, "drill.json")
        start_ns = _json(run, "series.json")["streams"]["bins"]["start_ns"]
        metrics, verdict = _json(run, "metrics.json"), _json(run, "verdict.json")
        bytes_of = {each["flow"]: each["packet_bytes"] for each in _json(run, "series.json")["streams"]["flows"]}
        flows = {
            each["flow"]: Flow(
                each["flow"],
                each["name"],
                each["src_nic"],
                each["dst_nic"],
                each["rate_pps"] * 8 * (bytes_of[each["flow"]] + _FRAMING),
                each["rate_pps"],
                each["stopped_at_ns"],
                each["lost"],
                each["unexplained_lost"],
            )
            for each in metrics["flows"]
        }
        routes = [each["at_ns"] for each in _lines(run, "events.jsonl") if each["kind"] == "route"]
        edges = [_edge(metrics, at, each["edge"], routes) for at, each in enumerate(metrics["edges"])]
        ways: dict[int, list[Way]] = {}
        for each in _lines(run, "paths.jsonl"):
            told = Way(each["at_ns"], each["port"], tuple(each["links"]), not each["dropped"])
            ways.setdefault(each["flow"], []).append(told)
        taken = spans(network, drill, start_ns)
        end_ns = start_ns + drill["end_ns"]
        return cls(network, drill, verdict, flows, edges, taken, ways, start_ns, end_ns, _words(verdict))

    def dead_at(self, at_ns: int) -> frozenset[str]:
        """Links that faults have taken at a time."""
        return frozenset(link for span in self.spans if span.begin_ns <= at_ns < span.end_ns for link in span.links)

    def load_at(self, at_ns: int) -> dict[tuple[str, str], float]:
        """Bits per second that each directed link is offered, by the ways told last; (link, node it comes from)."""
        found: dict[tuple[str, str], float] = {}
        for flow in self.flows.values():
            if flow.dead_ns is not None and flow.dead_ns <= at_ns:
                continue
            for step in self.network.directions(flow.src, self.taken_at(flow.id, at_ns)):
                found[step] = found.get(step, 0.0) + flow.bps
        return found

    def way_at(self, flow: int, at_ns: int) -> tuple[str, ...]:
        """The way told last before a time; () where it changed since and nobody asked."""
        told = [each for each in self.ways.get(flow, ()) if each.at_ns <= at_ns]
        return told[-1].links if told and told[-1].arrives else ()

    def changes(self, begin_ns: int, end_ns: int) -> Iterator[int]:
        """Every time between two at which some flow's way changed or was asked."""
        for ways in self.ways.values():
            yield from (each.at_ns for each in ways if begin_ns < each.at_ns < end_ns)

    def taken_at(self, flow: int, at_ns: int) -> tuple[str, ...]:
        """The links that its packets load: of a way that changed and was not asked then, those that the next look told,
        as every change is told. What is dropped on its way loads the links before that.
        """
        ways = self.ways.get(flow, ())
        last = max((at for at, each in enumerate(ways) if each.at_ns <= at_ns), default=None)
        if last is None:
            return ()
        if ways[last].links or not ways[last].arrives or last + 1 == len(ways):
            return ways[last].links
        return ways[last + 1].links

    def overload_at(self, at_ns: int) -> dict[tuple[str, str], float]:
        """Directed links that are offered more than they carry, as a share of their rate."""
        load = self.load_at(at_ns)
        return {step: bps / self.network.links[step[0]].bps for step, bps in load.items() if bps > self.capacity(step)}

    def capacity(self, step: tuple[str, str]) -> float:
        """What a link carries."""
        return self.network.links[step[0]].bps


def _edge(metrics: Mapping[str, Any], at: int, told: Mapping[str, Any], routes: Sequence[int]) -> Edge:
    flows = {}
    for each in metrics["flows"]:
        of = each["edges"][at]
        first, last = of["first_loss_at_ns"], of["last_loss_at_ns"]
        flows[each["flow"]] = AtEdge(
            of["lost"], of["outage_plbm_ms"], of["control"], not of["recovered"] or of["stopped_by_error"], first, last
        )
    label = f"{told['fault']} {told['kind']} {told['index']}"
    begin, end = told["inject_before_ns"], told["window_end_ns"]
    return Edge(label, told["kind"], begin, end, flows, max((at for at in routes if begin <= at < end), default=begin))


def _json(run: Path, name: str) -> Any:
    return json.loads((run / name).read_text())


def _lines(run: Path, name: str) -> Iterator[Any]:
    return map(json.loads, (run / name).read_text().splitlines())


def _words(found: object) -> str:
    """Every text in it, keys included."""
    if isinstance(found, dict):
        return " ".join(f"{key} {_words(each)}" for key, each in found.items())
    if isinstance(found, list):
        return " ".join(_words(each) for each in found)
    return found.lower() if isinstance(found, str) else ""
