"""Chakra traces for tests, as the jsonizer writes them: objects one after the other. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hpn.traffic.congestion.scale import Scale
from hpn.traffic.job.chakra.reading import read_chakra
from hpn.traffic.job.job import Job, Site, build
from tests.traffic.collectives.memory import MTU, hosts_of

Made = dict[str, object]


def node(id_: int, type_: str, *after: int, attr: Made | None = None, **fields: object) -> Made:
    """A node of the schema: 64-bit numbers as text, what is 0 or empty left out."""
    made: Made = {"name": "x", "type": type_, **fields}
    if id_:
        made["id"] = str(id_)
    if after:
        made["dataDeps"] = [str(other) for other in after]
    made["attr"] = [{"name": name, **_value(value)} for name, value in {"is_cpu_op": False, **(attr or {})}.items()]
    return made


def _value(value: object) -> Made:
    if isinstance(value, bool):
        return {"boolVal": value}
    if isinstance(value, str):
        return {"stringVal": value}
    if isinstance(value, list):
        return {"boolList": {"values": value}}
    return {"int64Val": str(value) if isinstance(value, int) else value}


def compute(id_: int, *after: int, micros: int = 1000, on_cpu: bool = False) -> Made:
    """Time that passes."""
    return node(id_, "COMP_NODE", *after, attr={"is_cpu_op": on_cpu}, durationMicros=str(micros))


def coll(id_: int, *after: int, kind: object = 0, size: object = 25 * MTU * 4, **attr: object) -> Made:
    """A collective; an AllReduce unless said."""
    return node(id_, "COMM_COLL_NODE", *after, attr={"comm_type": kind, "comm_size": size, **attr})


def send(id_: int, target: int, *after: int, size: int = 1000, **attr: object) -> Made:
    """A message to another rank."""
    return node(id_, "COMM_SEND_NODE", *after, attr={"comm_size": size, "comm_dst": target, **attr})


def recv(id_: int, source: int, *after: int, size: int = 1000, **attr: object) -> Made:
    """A message of another rank."""
    return node(id_, "COMM_RECV_NODE", *after, attr={"comm_size": size, "comm_src": source, **attr})


def text(nodes: Sequence[object]) -> str:
    """A rank's file."""
    return "\n".join(json.dumps(each) for each in ({"version": "1.0.0"}, *nodes))


def job(*ranks: Sequence[object], slower: float = 1, gpus: int = 1) -> Job:
    """The job of a trace with these nodes at each rank; ``gpus`` of a host."""
    files = [(f"t.{rank}.json", text(nodes)) for rank, nodes in enumerate(ranks)]
    return build(read_chakra(files), Site(tuple(hosts_of(len(ranks), gpus)), MTU, Scale(slower=slower)))
