"""What the ranks of a Chakra trace wait for, and what they send."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hpn.testbed.errors import InputError
from hpn.traffic.collectives.program import Program, Send
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.job.chakra.reading import read_chakra
from hpn.traffic.job.chakra.work import MOST_NODES, ChakraWork
from hpn.traffic.job.job import Job, Site, build
from tests.traffic.collectives.memory import MTU, hosts_of, shuffled, timed
from tests.traffic.job.chakra.traces import Made, coll, compute, job, node, recv, send, text
from tests.traffic.job.figures import RankTimes

MS = 10**6
RATE_BPS = 1e9
BARE = 25 * MTU * 4


def _spans(made: Job, rank: int = 0) -> list[tuple[str, int, int]]:
    outcome = timed(made.programs, RATE_BPS)
    assert outcome.wrong == 0
    times = RankTimes(made.programs[rank], outcome.timed[rank])
    told = [(span.label, timed.begin_ns, timed.end_ns) for span, timed in times.spans()]
    return sorted(told, key=lambda each: each[1:])


def _sent(program: Program) -> int:
    return sum(op.piece.size_bytes for op in program.ops if isinstance(op, Send))


def test_a_node_begins_when_all_it_depends_on_are_over() -> None:
    by_control = {**compute(3, 1), "ctrlDeps": ["2"]}
    nodes = [compute(1, micros=2000), compute(2, micros=3000, on_cpu=True), by_control, coll(4, 3)]
    spans = {label: (begin, end) for label, begin, end in _spans(job(nodes, nodes)) if label != "iteration"}
    assert spans["compute"] == (3 * MS, 4 * MS)
    assert spans["all-reduce"][0] == 4 * MS


def test_a_gpu_does_one_thing_at_a_time_and_its_cpu_another_beside() -> None:
    nodes = [compute(1), compute(2), compute(3, micros=1500, on_cpu=True), coll(4, 1, 2, 3)]
    assert [each[0:2] for each in _spans(job(nodes, nodes)) if each[0] == "all-reduce"] == [("all-reduce", 2 * MS)]


def test_what_depends_on_nothing_goes_on_beside() -> None:
    nodes = [coll(1), compute(2)]
    begins = {label: begin for label, begin, _ in _spans(job(nodes, nodes))}
    assert begins["all-reduce"] == begins["compute"] == 0


def test_collectives_of_one_group_follow_one_another() -> None:
    nodes = [coll(1), coll(2, kind=6)]
    spans = {label: (begin, end) for label, begin, end in _spans(job(nodes, nodes))}
    assert spans["all-to-all"][0] == spans["all-reduce"][1]


def test_a_receiver_goes_on_when_it_has_what_was_sent() -> None:
    sender = [compute(1, micros=5000), send(2, 1, 1, size=100 * MTU)]
    made = job(sender, [recv(7, 0, size=100 * MTU), compute(8, 7)])
    begin = next(begin for label, begin, _ in _spans(made, 1) if label == "compute")
    assert begin == 5 * MS + 100 * MTU * 8


def test_messages_are_told_apart_by_their_tags() -> None:
    sender = [send(1, 1, size=5000, comm_tag=1), send(2, 1, 1, size=7000, comm_tag=2)]
    receiver = [recv(1, 0, size=7000, comm_tag=2), recv(2, 0, 1, size=5000, comm_tag=1)]
    made = job(sender, receiver)
    assert shuffled(made.programs, 1).wrong == 0
    assert _sent(made.programs[0]) == 12_000


def test_what_is_received_may_be_sent_on_both_ways() -> None:
    made = job([send(1, 1), recv(2, 1, 1)], [send(1, 0), recv(2, 0, 1)])
    assert [_sent(program) for program in made.programs] == [1000, 1000]


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        (0, 2 * 3 * 8000),  # a ring: each rank sends 2 (n - 1) quarters
        ("ALL_GATHER", 3 * 4 * 8000),  # 8,000 B are what a rank puts in
        (5, 3 * 8000 * 4 // 4),
        ("6", 3 * 8000),
        ("REDUCE_SCATTER", 3 * 8000),
        (8, 3 * 8000),
    ],
)
def test_sizes_are_those_that_a_rank_puts_in(kind: object, sent: int) -> None:
    nodes = [coll(1, kind=kind, size=8000)]
    made = job(nodes, nodes, nodes, nodes)
    total = sum(_sent(program) for program in made.programs)
    assert total == sent
    assert shuffled(made.programs, 3).wrong == 0


def test_process_groups_are_those_that_a_metadata_node_tells() -> None:
    told = '[{"pg_name": "0", "ranks": []}, {"pg_name": "5", "ranks": [2, 0]}, {"pg_name": "6", "ranks": [1]}]'
    groups = node(9, "METADATA_NODE", inputs={"values": f"['{told}']"})
    member = [coll(1, pg_name="5"), coll(2, 1, pg_name="0"), groups]
    other = [coll(1, pg_name="6"), coll(2, 1, pg_name=""), groups]
    made = job(member, other, member)
    for rank, labels in ((0, [2, 3]), (1, [3]), (2, [2, 3])):
        assert [span.ranks for span in made.programs[rank].spans if span.ranks] == labels
    assert shuffled(made.programs, 5).wrong == 0


def test_a_lab_of_smaller_sizes_sends_less_and_times_stay() -> None:
    nodes = [compute(1), coll(2, 1, size=400_000)]
    made = job(nodes, nodes, slower=100)
    assert _sent(made.programs[0]) == 4000
    assert next(end for label, _, end in _spans(made) if label == "compute") == MS


@pytest.mark.parametrize("seed", range(4))
def test_a_trace_of_everything_comes_out_right_whatever_overtakes_what(seed: int) -> None:
    even = [compute(1), send(2, 1, 1), coll(3, 2), recv(4, 3), coll(5, 3, 4, kind=7), coll(6, kind=2, size=5000)]
    made = job(
        even,
        [recv(1, 0), coll(3, 1), coll(5, 3, kind=7), coll(6, kind=2, size=5000)],
        [coll(3), compute(4, 3), coll(5, 4, kind=7), coll(6, kind=2, size=5000)],
        [coll(3), send(4, 0, 3), coll(5, 3, kind=7), coll(6, kind=2, size=5000)],
        gpus=2,
    )
    assert shuffled(made.programs, seed, iterations=3).wrong == 0


def test_a_file_for_all_ranks_is_done_by_each() -> None:
    work = read_chakra([("t.json", text([compute(1), coll(2, 1)]))], shared=True)
    programs = build(work, Site(tuple(hosts_of(3)), MTU, Scale())).programs
    assert [len(program.spans) for program in programs] == [3, 3, 3]


def _refused(*ranks: Sequence[Made]) -> str:
    with pytest.raises(InputError) as error:
        job(*ranks)
    assert set(error.value.about) == {("trace",)}
    return str(error.value)


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        (([coll(1)], [coll(1, kind=2)]), "t.1.json: node 1 is all-gather of 102400 B, and t.0.json: node 1 is all-red"),
        (([coll(1)], [coll(4, size=8)]), "t.1.json: node 4 is all-reduce of 8 B, and t.0.json: node 1 is all-reduce"),
        (([coll(1), coll(2, 1)], [coll(1)]), "t.1.json: 1 collectives of ranks 0, 1, and t.0.json has 2, the last is"),
        (([coll(1)], [compute(1)]), "t.1.json: 0 collectives of ranks 0, 1, and t.0.json has 1"),
        (
            ([send(1, 1)], [compute(1)]),
            "t.0.json: node 1 has no other end: 1 sends from rank 0 to rank 1 with tag 0, 0",
        ),
        (
            ([compute(1)], [recv(3, 0)]),
            "t.1.json: node 3 has no other end: 0 sends from rank 0 to rank 1 with tag 0, 1",
        ),
        (([send(1, 1, comm_tag=1)], [recv(3, 0)]), "t.0.json: node 1 has no other end"),
        (([send(1, 1)], [recv(3, 0, size=999)]), "t.1.json: node 3 receives 999 B, and t.0.json: node 1 sends 1000 B"),
        (([send(1, 2)], [compute(1)]), "t.0.json: node 1 goes from rank 0 to rank 2, of 2"),
        (([send(1, 0)], [compute(1)]), "t.0.json: node 1 goes from rank 0 to rank 0, of 2"),
        (
            ([recv(1, 1), send(2, 1, 1)], [recv(5, 0), send(6, 0, 5)]),
            "t.1.json: node 6: what it comes after, here and",
        ),
    ],
)
def test_ranks_that_disagree_are_refused_by_file_and_node(ranks: tuple[list[Made], list[Made]], told: str) -> None:
    assert told in _refused(*ranks)


def test_groups_that_a_rank_is_not_in_or_the_job_has_not_are_refused() -> None:
    for ranks in ("1", "0, 7"):
        told = f'[{{"pg_name": "5", "ranks": [{ranks}]}}]'
        nodes = [node(9, "METADATA_NODE", inputs={"values": f"['{told}']"}), coll(1, pg_name="5")]
        assert f"t.0.json: node 1: a collective of ranks {ranks} at rank 0 of 2" in _refused(nodes, [compute(1)])


def test_collectives_of_two_groups_in_another_order_at_each_rank_are_a_circle() -> None:
    told = '[{"pg_name": "5", "ranks": [0, 1]}, {"pg_name": "6", "ranks": [1, 0]}]'
    groups = node(9, "METADATA_NODE", inputs={"values": f"['{told}']"})
    one = [groups, coll(1, pg_name="5"), coll(2, 1, pg_name="6")]
    other = [groups, coll(1, pg_name="6"), coll(2, 1, pg_name="5")]
    assert "what it comes after, here and at other ranks, leads back to it" in _refused(one, other)


def test_another_number_of_ranks_than_the_job_has_is_refused() -> None:
    work = read_chakra([(f"t.{rank}.json", text([coll(1)])) for rank in (0, 1)])
    with pytest.raises(InputError, match=r"of 2 ranks \(t.0.json to t.1.json\) is for as many GPUs; the job has 3"):
        build(work, Site(tuple(hosts_of(3)), MTU, Scale()))


def test_a_file_for_all_ranks_counts_once_for_each() -> None:
    many = tuple(read_chakra([("t.json", text([coll(1)]))], shared=True).traces[0].nodes * (MOST_NODES // 4 + 1))
    trace = read_chakra([("t.json", text([coll(1)]))], shared=True).traces[0]
    work = ChakraWork((type(trace)(trace.file, many),), shared=True)
    with pytest.raises(InputError, match=r"t.json: 20004 nodes in all of its 4 ranks; at most 20000"):
        build(work, Site(tuple(hosts_of(4)), MTU, Scale()))
