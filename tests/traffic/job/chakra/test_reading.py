"""What is read of Chakra's JSON, and what is refused with its file and node."""

from __future__ import annotations

import json

import pytest

from hpn.testbed.errors import InputError
from hpn.traffic.job.chakra.nodes import Joint, Node, RankTrace, Received, Sent, Spent
from hpn.traffic.job.chakra.reading import read_chakra
from hpn.traffic.job.chakra.work import MOST_NODES
from tests.traffic.job.chakra.traces import Made, coll, compute, node, recv, send, text


def _nodes(*nodes: object) -> tuple[Node, ...]:
    (trace,) = read_chakra([("t.0.json", text(nodes))]).traces
    return trace.nodes


def _refused(content: str, *, shared: bool = False) -> str:
    with pytest.raises(InputError) as error:
        read_chakra([("t.0.json", content)], shared=shared)
    return str(error.value)


def test_nodes_are_read_as_protobuf_writes_them() -> None:
    work = read_chakra(
        [
            ("t.0.json", text([compute(0, micros=3), coll(4, 0), send(2, 1, 0, comm_src=0, comm_tag=9)])),
            ("t.1.json", text([compute(1, on_cpu=True), recv(2, 0, 1, comm_dst=1, comm_tag=9), coll(3, kind="5")])),
        ]
    )
    assert work.traces == (
        RankTrace(
            "t.0.json",
            (
                Node(0, (), Spent(3000)),
                Node(2, (0,), Sent(1, 1000, 9)),
                Node(4, (0,), Joint("all-reduce", 102_400, None)),
            ),
        ),
        RankTrace(
            "t.1.json",
            (
                Node(1, (), Spent(1_000_000, on_cpu=True)),
                Node(2, (0,), Received(0, 1000, 9)),
                Node(3, (), Joint("broadcast", 102_400, None)),
            ),
        ),
    )


def test_names_of_the_schema_and_plain_numbers_are_as_good() -> None:
    attr = [{"name": "comm_type", "string_val": "ALL_REDUCE"}, {"name": "comm_size", "uint64_val": 5}]
    plain = {"id": 2, "type": 7, "ctrl_deps": [1], "data_deps": [1], "duration_micros": 1, "attr": attr}
    assert _nodes({"id": 1}, plain) == (Node(1, (), Spent()), Node(2, (0,), Joint("all-reduce", 5, None)))


def test_nodes_may_stand_before_those_they_depend_on() -> None:
    assert [each.id for each in _nodes(compute(1, 5), compute(5, 3), compute(3))] == [3, 5, 1]


def test_all_dimensions_are_all_ranks() -> None:
    assert _nodes(coll(1, involved_dim=[True, True])) == (Node(1, (), Joint("all-reduce", 102_400, None)),)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (coll(2, kind=1), "node 2: REDUCE cannot be replayed; there are ALL_REDUCE"),
        (coll(2, kind=9), "node 2: BARRIER cannot be replayed"),
        (coll(2, kind=10), "node 2: its comm_type is 10; there are 0 to 9"),
        (coll(2, kind="SUM"), "node 2: its comm_type is 'SUM'; write a whole number"),
        (node(2, "COMM_COLL_NODE", attr={"comm_size": 1}), "node 2: it has no comm_type"),
        (coll(2, size=0), "node 2: its comm_size is 0; 1 to"),
        (coll(2, size=10**12 + 1), "node 2: its comm_size is 1000000000001; 1 to"),
        (coll(2, size=-1), "node 2: its comm_size is '-1'; write a whole number"),
        (coll(2, size=1.5), "node 2: its comm_size is 1.5; write a whole number"),
        (coll(2, size=True), "node 2: its comm_size is true; write a whole number"),
        (coll(2, is_cpu_op=True), "node 2: a COMM_COLL_NODE with is_cpu_op"),
        (coll(2, is_cpu_op=0), "node 2: its is_cpu_op is '0'"),
        (coll(2, involved_dim=[True, False]), "node 2: its involved_dim leaves out a dimension"),
        (coll(2, pg_name="7"), "node 2: its pg_name is '7', which no METADATA_NODE tells"),
        (compute(2, 9), "node 2: it comes after node 9, which is not there"),
        (compute(2, 2), "node 2: what it comes after leads back to it"),
        (compute(1), "node 1: there is another of that id before it"),
        (compute(2, micros=-1), "node 2: its duration_micros is '-1'; write a whole number"),
        (compute(2, micros=600_000_001), "node 2: its duration_micros is 600000001; at most 600000000"),
        ({**compute(2), "durationMicros": 1.5}, "node 2: its duration_micros is 1.5"),
        (node(2, "COMP_NODE", attr={"num_ops": 5}), "node 2: it has num_ops and no duration_micros"),
        (node(2, "MEM_LOAD_NODE"), "node 2: a MEM_LOAD_NODE cannot be replayed"),
        (node(2, "GPU_NODE"), "node 2: its type is 'GPU_NODE'"),
        ({**compute(2), "type": 8}, "node 2: its type is 8; there are 0 to 7"),
        ({**compute(2), "dataDep": ["1"]}, "node 2: no field 'data_dep'"),
        ({**compute(2), "dataDeps": "1"}, "node 2: its data_deps are no list"),
        ({**compute(2), "ctrlDeps": [None]}, "node 2: its ctrl_deps is empty"),
        ({**compute(2), "id": "two"}, "object 2 of the nodes: its id is 'two'"),
        ({**compute(2), "attr": 1}, "node 2: its attr is no list"),
        ({**compute(2), "attr": [1]}, "node 2: an entry of its attr is no object with a name"),
        ({**compute(2), "attr": [{"name": "a"}]}, "node 2: its attr 'a' has 0 values"),
        ({**compute(2), "attr": [{"name": "a", "boolVal": 1}] * 2}, "node 2: an entry of its attr is no object"),
        (node(2, "COMM_SEND_NODE", attr={"comm_size": 1}), "node 2: it has no comm_dst"),
        (send(2, 1, comm_src=3), "node 2: its comm_src is 3, and its file is that of rank 0"),
        (recv(2, 1, comm_dst=1), "node 2: its comm_dst is 1, and its file is that of rank 0"),
        ({**node(2, "METADATA_NODE"), "inputs": {"values": "['[{\"pg_name\": 1}]']"}}, "node '2': its process groups"),
        ({**node(2, "METADATA_NODE"), "inputs": {"values": "['pg_name']"}}, "not JSON"),
        (
            {**node(2, "METADATA_NODE"), "inputs": {"values": '[\'[{"pg_name": "5", "ranks": [0, 1, 0]}]\']'}},
            "process group '5' has a rank twice",
        ),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_file_and_node(bad: Made, told: str) -> None:
    told_all = _refused(text([compute(1), bad])).splitlines()
    assert any(line.startswith("t.0.json: ") and told in line for line in told_all), told_all


def test_a_circle_is_told_by_a_node_on_it() -> None:
    assert _refused(text([compute(1, 2), compute(2, 3), compute(3, 2)])) == (
        "t.0.json: node 2: what it comes after leads back to it"
    )


def test_all_mistakes_are_told_at_once() -> None:
    assert len(_refused(text([coll(1, kind=1), coll(2, size=0), compute(3, 8)])).splitlines()) == 3


def test_messages_in_a_file_for_all_ranks_are_refused() -> None:
    assert "t.0.json: messages in a file for all ranks" in _refused(text([send(1, 1)]), shared=True)


def test_more_nodes_than_the_limit_are_refused_over_all_files() -> None:
    half = text([{"id": at} for at in range(1, MOST_NODES // 2 + 2)])
    with pytest.raises(InputError, match=r"t.1.json: more than 20000 nodes with those of ranks before"):
        read_chakra([("t.0.json", half), ("t.1.json", half)])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "t.0.json:1: not JSON"),
        ('{}\n{"id": 1}\n}', "t.0.json:3: not JSON"),
        ("{}", "t.0.json: the trace has no node"),
        ("{} [1]", "t.0.json: a Chakra trace is JSON objects"),
        ('{"version": "1"} {"dataDeps": [], "data_deps": []}', "t.0.json: a Chakra trace is JSON objects"),
        ('{}\n{"id": NaN}', "t.0.json:2: in what begins here: NaN is no number"),
        ('{}\n{"id": -Infinity}', "t.0.json:2: in what begins here: -Infinity is no number"),
        ('{"id": 1, "id": 2}', "t.0.json:1: in what begins here: an object has a key twice"),
        ('{"id": ' + "9" * 5000 + "}", "t.0.json:1: in what begins here: Exceeds the limit"),
        ('{"id": 1e999}', "its id is inf"),
        ('{"a":' * 100_000, "t.0.json:1: what begins here is nested too deep"),
        (json.dumps({"workload_graph": [{"Id": 1}]}), "no field 'workload_graph'"),
    ],
)
def test_what_is_no_trace_is_refused(content: str, told: str) -> None:
    assert told in _refused(content)
