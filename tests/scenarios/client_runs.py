"""What is measured of a client, alone or beside a job."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hpn.failover.analysis.client import ClientFacts, RankEnd
from hpn.failover.analysis.job import DeathFact, JobFacts, SpanFact
from hpn.failover.analysis.model import QUICK
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.run.measurement import Facts, JobRecords, Measurement
from hpn.traffic.client.ledger import Ledger
from hpn.traffic.client.lines import ClientStep
from hpn.traffic.jobengine.records import MESSAGE, SPAN
from tests.failover.synthetic import MS, NO_PACKETS, S, edge
from tests.results.sample import LOAD


def client_alone(
    expectations: tuple[Expectation, ...], deaths: tuple[DeathFact, ...] = (), misread: int = 0
) -> Measurement:
    """Two ranks end a step every 100 ms, from the first to the ninth second; rank 1 has another sum in one of them."""
    ledger = Ledger((0, 1))
    ledger.run(S, 9 * S)
    for number in range(80):
        for rank in (0, 1):
            begin_ns = S + number * 100 * MS + rank
            told = "ff" if (number, rank) == (7, 1) else "aa"
            step = ClientStep(number, None, begin_ns, begin_ns + 99 * MS, "all-reduce", 1_000_000, told)
            assert ledger.take((rank,), step, begin_ns + 100 * MS) == ""
    spans = (SpanFact("iteration", "iteration", 0, 2), SpanFact("all-reduce 1 MB", "all-reduce", 1_000_000, 2))
    ends = tuple(RankEnd(rank, "p0.s0.h0", "p0.s0.h0.r0", 80, "", None, False, "bye") for rank in (0, 1))
    client = ClientFacts("command", ends, 2, True, misread, "'step x'")
    job = JobFacts({0: spans, 1: spans}, 0, 1000, 0, 0, {}, deaths=deaths, client=client)
    facts = Facts(expectations, QUICK, (), (edge(4 * S, 9 * S),), S, 3 * S, 9 * S, LOAD, 0, (), job=job)
    records = JobRecords(np.frombuffer(ledger.packed(), SPAN), np.empty(0, MESSAGE))
    return Measurement(facts, (), *NO_PACKETS, None, records)


def client_beside_job(expectations: tuple[Expectation, ...], misread: int = 0) -> Measurement:
    """The same client, which dies, beside a job of two ranks that ends an iteration every 50 ms."""
    alone = client_alone(expectations, (DeathFact(5 * S, "rank 1 in p0.s0.h1: killed by signal 11"),), misread)
    spans = np.zeros(2 * 160, SPAN)
    for at in range(160):
        for rank in (0, 1):
            begin_ns = S + at * 50 * MS
            spans[2 * at + rank] = (rank, at, 0, 0, begin_ns, begin_ns + 50 * MS)
    job = JobFacts({rank: (SpanFact("iteration", "iteration", 0, 2),) for rank in (0, 1)}, 2, MS, 1000, 0, {})
    facts = replace(alone.facts, job=job, beside=alone.facts.job)
    return replace(alone, facts=facts, job=JobRecords(spans, np.empty(0, MESSAGE)), beside=alone.job)
