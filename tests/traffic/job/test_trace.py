"""Recorded sequences of collectives: what is read of PARAM's format, and what its replay waits for."""

from __future__ import annotations

import json

import pytest

from hpn.testbed.errors import InputError
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.job.job import Job, Site, build
from hpn.traffic.job.trace import Call, ReceiveCall, SendCall, Wait
from hpn.traffic.job.tracefile import read_trace
from tests.traffic.collectives.memory import MTU, hosts_of, shuffled, timed
from tests.traffic.job.figures import RankTimes

MS = 10**6
RATE_BPS = 1e9


def _entry(comms: str, elements: int = 25 * MTU, **more: object) -> dict[str, object]:
    return {"comms": comms, "in_msg_size": elements, "out_msg_size": elements, "dtype": "Float", **more}


def _job(*entries: dict[str, object], n: int = 4) -> Job:
    return build(read_trace(json.dumps(entries), "t.json"), Site(tuple(hosts_of(n)), MTU, Scale()))


def _spans(job: Job, rank: int = 0) -> dict[str, tuple[int, int]]:
    outcome = timed(job.programs, RATE_BPS)
    assert outcome.wrong == 0
    times = RankTimes(job.programs[rank], outcome.timed[rank])
    return {f"{span.label} {timed.span}": (timed.begin_ns, timed.end_ns) for span, timed in times.spans()}


def test_entries_are_read_as_param_writes_them() -> None:
    work = read_trace(
        json.dumps(
            [
                {"comms": "init", "pg_id": 3, "req": -1, "global_ranks": [0, 2], "world_size": 2},
                _entry("all_reduce", 10, pg_id=3, req=1, startTime_ns=5000),
                {
                    "comms": "all_gather_base",
                    "in_msg_size": 4,
                    "out_msg_size": 8,
                    "dtype": "bfloat16",
                    "global_ranks": [1, 2],
                },
                {"comms": "wait", "req": 1},
                _entry("broadcast", 1, global_ranks=[0, 1, 2], root=1, startTime_ns=7000),
                {"comms": "barrier"},
                _entry("send", 2, src_rank=0, dst_rank=3),
                {"comms": "recv", "src_rank": 0, "dst_rank": 3},
            ]
        ),
        "t.json",
    )
    assert work.steps == (
        Call("all-reduce", 40, (0, 2), 1, 0),
        Call("all-gather", 16, (1, 2), None, None),
        Wait(1),
        Call("broadcast", 4, (1, 0, 2), None, 2000),
        SendCall(0, 3, 8),
        ReceiveCall(0, 3),
    )


def test_a_call_is_waited_for_unless_a_wait_follows() -> None:
    one_after_the_other = _spans(_job(_entry("all_reduce"), _entry("all_to_all")))
    assert one_after_the_other["all-reduce 1"][1] == one_after_the_other["all-to-all 2"][0]
    beside = _spans(
        _job(_entry("all_reduce", req=7), _entry("all_to_all", global_ranks=[1, 0, 2, 3]), {"comms": "wait", "req": 7})
    )
    assert beside["all-reduce 1"][0] == beside["all-to-all 2"][0] == 0


def test_calls_of_one_group_go_one_after_the_other_even_if_nobody_waits() -> None:
    entries = [_entry("all_reduce", req=at) for at in (1, 2)] + [{"comms": "wait", "req": at} for at in (1, 2)]
    spans = _spans(_job(*entries))
    assert spans["all-reduce 1"][1] == spans["all-reduce 2"][0]


def test_a_wait_holds_up_what_follows() -> None:
    spans = _spans(
        _job(
            _entry("all_reduce", req=1),
            {"comms": "wait", "req": 1},
            _entry("broadcast", global_ranks=[0, 1]),
        )
    )
    assert spans["broadcast 2"][0] == spans["all-reduce 1"][1]


def test_what_was_begun_later_begins_no_sooner() -> None:
    spans = _spans(
        _job(
            _entry("all_reduce", MTU // 4, startTime_ns=10**12),
            _entry("all_reduce", MTU // 4, startTime_ns=10**12 + 5 * MS),
            _entry("all_reduce", MTU // 4, startTime_ns=10**12 + 6 * MS),
        )
    )
    assert [spans[f"all-reduce {at}"][0] for at in (1, 2, 3)] == [0, 5 * MS, 6 * MS]


def test_a_receiver_goes_on_when_it_has_what_was_sent() -> None:
    job = _job(
        _entry("send", src_rank=0, dst_rank=1),
        {"comms": "recv", "src_rank": 0, "dst_rank": 1},
        _entry("broadcast", global_ranks=[1, 2]),
    )
    assert _spans(job, rank=1)["broadcast 2"][0] == 25 * MTU * 4 * 8


@pytest.mark.parametrize("seed", range(4))
def test_a_trace_of_everything_comes_out_right_whatever_overtakes_what(seed: int) -> None:
    job = _job(
        _entry("all_reduce", 3000, req=1),
        _entry("reduce_scatter", 500, global_ranks=[3, 1, 0]),
        _entry("all_gather", 700, global_ranks=[2, 1]),
        _entry("send", 100, src_rank=2, dst_rank=0),
        {"comms": "wait", "req": 1},
        {"comms": "recv", "src_rank": 2, "dst_rank": 0},
        _entry("all_to_all", 999),
    )
    assert shuffled(job.programs, seed, iterations=3).wrong == 0


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"compute": "gemm"}, "t.json: entry 2: it has no 'comms'"),
        (_entry("all_to_allv"), "entry 2: 'all_to_allv' cannot be replayed; there are all_reduce"),
        (_entry("all_reduce", 0), "entry 2: its in_msg_size is 0; at least 1"),
        (_entry("all_reduce", -1), "entry 2: its in_msg_size is -1; write a whole number"),
        (_entry("all_reduce", dtype="complex"), "entry 2: its dtype is 'complex'"),
        (_entry("all_reduce", global_ranks="all"), "entry 2: its global_ranks are no list of numbers"),
        (_entry("broadcast", root=5, global_ranks=[0, 1]), "entry 2: its root 5 is none of its ranks"),
        ({"comms": "wait", "req": 9}, "entry 2: it waits for request 9, which nothing before it begins"),
        ({"comms": "recv", "src_rank": 0, "dst_rank": 1}, "entry 2: it receives from rank 0 what no entry before it"),
        (_entry("send", src_rank=0), "entry 2: its dst_rank is None"),
    ],
)
def test_what_cannot_be_replayed_is_refused_by_its_number(entry: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as error:
        read_trace(json.dumps([_entry("all_reduce"), entry]), "t.json")
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[\n{,", "t.json:2: not JSON"),
        ("{}", "t.json: a trace is a JSON list"),
        ("[]", "t.json: a trace is a JSON list"),
        ('[{"comms": "barrier"}]', "t.json: the trace has no collective and no message"),
    ],
)
def test_what_is_no_trace_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_trace(text, "t.json")


def test_ranks_that_the_job_has_not_are_refused() -> None:
    for entry in (_entry("all_reduce", global_ranks=[0, 4]), _entry("send", src_rank=4, dst_rank=0)):
        with pytest.raises(InputError, match="there are ranks 0 to 3"):
            _job(entry)
