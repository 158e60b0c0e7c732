"""Reader of a subset of Chakra execution traces in JSON. PURE.

The format (mlcommons/chakra: schema/protobuf/et_def.proto, and the JSON of its jsonizer) is a sequence of JSON objects:
first the trace's metadata, then a node each. It is protobuf's JSON: names in camel case or as in the schema, 64-bit
numbers as text or not, enums by name or number, 0 and empty values left out. Values of ``attr`` are under the name of
their type. Their meaning follows astra-sim's feeder and workload layer (astra-sim/astra-sim).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpn.testbed.errors import InputError
from hpn.testbed.files.document import shorten
from hpn.traffic.job.chakra.fields import Fields, Unfit, attributes, fields_of, named, whole
from hpn.traffic.job.chakra.nodes import Group, Joint, Node, RankTrace, Received, Sent, Spent
from hpn.traffic.job.chakra.topological_order import DependencyCycle, in_order
from hpn.traffic.job.chakra.work import MOST_NODES, ChakraWork
from hpn.traffic.job.jsonvalues import json_values

MOST_NS = 600 * 10**9
"""Longest duration of one node."""
MOST_BYTES = 10**12
"""Largest collective or message."""

_TYPES = (
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
)
_COMM_TYPES = (
    "ALL_REDUCE",
    "REDUCE",
    "ALL_GATHER",
    "GATHER",
    "SCATTER",
    "BROADCAST",
    "ALL_TO_ALL",
    "REDUCE_SCATTER",
    "REDUCE_SCATTER_BLOCK",
    "BARRIER",
)
_KINDS = {
    "ALL_REDUCE": "all-reduce",
    "ALL_GATHER": "all-gather",
    "BROADCAST": "broadcast",
    "ALL_TO_ALL": "all-to-all",
    "REDUCE_SCATTER": "reduce-scatter",
    "REDUCE_SCATTER_BLOCK": "reduce-scatter",  # equal blocks, which ours always are
}
_OTHER_FIELDS = ("name", "start_time_micros", "inputs", "outputs")
_FIELDS = frozenset(("id", "type", "ctrl_deps", "data_deps", "duration_micros", "attr", *_OTHER_FIELDS))
_METADATA = frozenset(("version", "attr"))


def read_chakra(files: Sequence[tuple[str, str]], *, shared: bool = False) -> ChakraWork:
    """Return the trace in ``files`` (names and texts, by rank). InputError for anything that cannot be replayed.

    ``shared``: there is one file, and all ranks run it.
    """
    traces: list[RankTrace] = []
    problems: list[str] = []
    left = MOST_NODES
    for name, text in files:
        found = _nodes(text, name)
        left -= len(found)
        if left < 0:
            raise InputError([*problems, f"{name}: more than {MOST_NODES} nodes with those of ranks before"])
        reader = _Reader(name, None if shared else len(traces))
        nodes = reader.read(found)
        if shared and any(isinstance(node.does, Sent | Received) for node in nodes):
            reader.problems.append(f"{name}: messages in a file for all ranks; write one for each, NAME.0.json, ...")
        problems += reader.problems
        traces.append(RankTrace(name, nodes))
    if problems:
        raise InputError(problems)
    return ChakraWork(tuple(traces), shared)


def _nodes(text: str, name: str) -> list[Fields]:
    """Return the nodes of a file, without the metadata of the trace."""
    found = [fields_of(value) for value in json_values(text, name)]
    if any(each is None for each in found):
        raise InputError(f"{name}: a Chakra trace is JSON objects, metadata and then nodes, one after the other")
    nodes: list[Fields] = [each for each in found if each is not None]
    if nodes and nodes[0].keys() <= _METADATA:
        del nodes[0]
    if not nodes:
        raise InputError(f"{name}: the trace has no node")
    return nodes


class _Reader:
    """Converter of one rank's file into nodes; ``problems`` names those that cannot be replayed."""

    def __init__(self, file: str, rank: int | None) -> None:
        self.problems: list[str] = []
        self._file, self._rank = file, rank
        self._groups: dict[str, Group | None] = {}  # process groups by name; None: all ranks

    def read(self, found: Sequence[Fields]) -> tuple[Node, ...]:
        """Return the nodes, each after all its dependencies; incomplete if there are problems."""
        done: dict[int, Spent | Joint | Sent | Received] = {}
        after: dict[int, set[int]] = {}
        self._metadata(found)
        for number, fields in enumerate(found, 1):
            name = f"object {number} of the nodes"
            try:
                node = whole(fields.get("id", 0), "id", 1 << 64)
                name = f"node {node}"
                if node in done:
                    raise Unfit("there is another of that id before it")
                done[node] = Spent()
                after[node] = _after(fields)
                done[node] = self._does(fields)
            except Unfit as error:
                self.problems.append(f"{self._file}: {name}: {error}")
        for node, others in after.items():
            if absent := sorted(others - after.keys()):
                self.problems.append(f"{self._file}: node {node}: it comes after node {absent[0]}, which is not there")
        return () if self.problems else self._in_order(done, after)

    def _metadata(self, found: Sequence[Fields]) -> None:
        for fields in found:
            if fields.get("type") in ("METADATA_NODE", 1):
                try:
                    self._groups |= _groups(fields)
                except Unfit as error:
                    self.problems.append(f"{self._file}: node {shorten(fields.get('id', 0))}: {error}")

    def _in_order(
        self, done: Mapping[int, Spent | Joint | Sent | Received], after: Mapping[int, set[int]]
    ) -> tuple[Node, ...]:
        try:
            order = in_order(after, lambda node: (node,))
        except DependencyCycle as error:
            self.problems.append(f"{self._file}: node {error.member}: what it comes after leads back to it")
            return ()
        place = {node: at for at, node in enumerate(order)}
        return tuple(Node(node, tuple(sorted(place[other] for other in after[node])), done[node]) for node in order)

    def _does(self, fields: Fields) -> Spent | Joint | Sent | Received:
        if unknown := sorted(fields.keys() - _FIELDS):
            raise Unfit(f"no field {shorten(unknown[0])}; a node has {', '.join(sorted(_FIELDS))}")
        kind, values = named(fields.get("type", 0), "type", _TYPES), dict(attributes(fields))
        on_cpu = values.get("is_cpu_op", False)
        if not isinstance(on_cpu, bool):
            raise Unfit(f"its is_cpu_op is {shorten(on_cpu)}; write it as bool_val")
        if kind == "COMP_NODE":
            return _compute(fields, values, on_cpu)
        if kind in {"INVALID_NODE", "METADATA_NODE"}:
            return Spent()
        if kind in {"MEM_LOAD_NODE", "MEM_STORE_NODE"}:
            raise Unfit(f"a {kind} cannot be replayed: there is no remote memory; leave it out")
        if on_cpu:
            raise Unfit(f"a {kind} with is_cpu_op; only GPUs communicate here")
        size = _size(values)
        if kind == "COMM_COLL_NODE":
            return self._collective(values, size)
        here, there = ("comm_src", "comm_dst") if kind == "COMM_SEND_NODE" else ("comm_dst", "comm_src")
        if there not in values:
            raise Unfit(f"it has no {there}; write the other end's rank")
        if self._rank not in {None, whole(values.get(here, self._rank or 0), here, 1 << 32)}:
            raise Unfit(f"its {here} is {values[here]}, and its file is that of rank {self._rank}")
        tag, peer = whole(values.get("comm_tag", 0), "comm_tag", 1 << 32), whole(values[there], there, 1 << 32)
        return Sent(peer, size, tag) if kind == "COMM_SEND_NODE" else Received(peer, size, tag)

    def _collective(self, values: Fields, size: int) -> Joint:
        if "comm_type" not in values:
            raise Unfit(f"it has no comm_type; there are {', '.join(_KINDS)}")
        kind = named(values["comm_type"], "comm_type", _COMM_TYPES)
        if kind not in _KINDS:
            raise Unfit(f"{kind} cannot be replayed; there are {', '.join(_KINDS)}")
        dims = values.get("involved_dim", [])
        if not isinstance(dims, list) or any(each is not True for each in dims):
            raise Unfit("its involved_dim leaves out a dimension, and a lab has none; name its ranks by a pg_name")
        group = values.get("pg_name", "")
        if not isinstance(group, str) or group not in {"", "0", *self._groups}:
            raise Unfit(f"its pg_name is {shorten(group)}, which no METADATA_NODE tells the ranks of")
        return Joint(_KINDS[kind], size, self._groups.get(group))


def _compute(fields: Fields, values: Fields, on_cpu: bool) -> Spent:
    micros = whole(fields.get("duration_micros", 0), "duration_micros", 1 << 64)
    if micros * 1000 > MOST_NS:
        raise Unfit(f"its duration_micros is {micros}; at most {MOST_NS // 1000}")
    if not micros and whole(values.get("num_ops", 0), "num_ops", 1 << 64):
        raise Unfit("it has num_ops and no duration_micros; how fast a GPU is, a lab does not know")
    return Spent(micros * 1000, on_cpu)


def _size(values: Fields) -> int:
    size = whole(values.get("comm_size", 0), "comm_size", 1 << 64)
    if not 1 <= size <= MOST_BYTES:
        raise Unfit(f"its comm_size is {size}; 1 to {MOST_BYTES}")
    return size


def _after(fields: Fields) -> set[int]:
    found: set[int] = set()
    for name in ("ctrl_deps", "data_deps"):
        deps = fields.get(name, [])
        if not isinstance(deps, list):
            raise Unfit(f"its {name} are no list")
        found |= {whole(dep, name, 1 << 64) for dep in deps}
    return found


def _groups(fields: Fields) -> dict[str, Group | None]:
    """Return the process groups in a metadata node, as PyTorch's converter writes them: JSON in a Python list."""
    inputs = fields_of(fields.get("inputs"))
    text = None if inputs is None else inputs.get("values")
    if not isinstance(text, str) or "pg_name" not in text:
        return {}
    try:
        told = json_values(text[2:-2], "its process groups")
    except InputError as error:
        raise Unfit(str(error)) from None
    found: dict[str, Group | None] = {}
    for each in told[0] if len(told) == 1 and isinstance(told[0], list) else [None]:
        name, ranks = (each.get("pg_name"), each.get("ranks")) if isinstance(each, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(ranks, list):
            raise Unfit("its process groups are no list of objects with pg_name and ranks")
        group = tuple(whole(rank, "ranks", 1 << 32) for rank in ranks)
        if len(set(group)) < len(group):
            raise Unfit(f"process group {shorten(name)} has a rank twice")
        found[name] = group or None
    return found
