"""Templates of new drill files: the traffic that runs, and the expectations that are tried on it. Pure.

Changes when a new drill can run something else.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.entries import Registry

_BOTH_PLANES = "  queue_pairs: 2  # of a connection, one through each plane\n"


@dataclass(frozen=True, slots=True)
class Template:
    """Template of a drill; ``expects`` are tried one by one, and those that do not fit a fault are left out."""

    name: str
    summary: str  # traffic: purpose
    runs: str  # sections for the traffic; GPUS: as many as there are
    healthy: str
    settle: str
    expects: tuple[str, ...]
    breaks: bool = True  # a fault belongs to it
    streams: bool = False  # it has a load; LOAD and WHY are filled in
    stranded: tuple[str, ...] = ()  # replaces ``expects`` where DEAD of ALL queue pairs have no path left


_OF_RANKS = (
    "job_survives: yes",
    "iteration_time: {below: 10 s, edge: failure}",
    "iterations_after: {at_least: 95 %, of: before, edge: repair}",
)


TEMPLATES: Registry[Template] = Registry(
    "template",
    lambda template: template.name,
    (
        Template(
            "streams",
            "constant-rate streams: how long every flow stands still",
            "workload: {pattern: permutation, queue_pairs: 4, load: LOAD}  # WHY",
            "1500 ms",
            "5 s",
            (
                "worst_outage: {below: 100 ms, edge: failure, flows: hit}",
                "worst_outage: {below: 100 ms, edge: repair, flows: hit}",
                "job_downtime: {below: 5 s}",
                "queue_pair_deaths: {at_most: 0}",
                "goodput_after: {at_least: 95 %, of: before}",
                "flows_unrecovered: {at_most: 0, edge: repair, flows: transit}",
                "packets_lost: {at_most: 0, flows: others}",
                "state_restored: yes",
            ),
            streams=True,
            stranded=(
                "queue_pair_deaths: {at_most: DEAD}  # the fault leaves DEAD of ALL queue pairs without a path",
                "packets_lost: {at_most: 0, flows: others}",
                "state_restored: yes",
            ),
        ),
        Template(
            "job",
            "a job that sums 4 MB by AllReduce again and again: what its iterations feel",
            f"job:\n{_BOTH_PLANES}  collective: {{kind: all-reduce, algorithm: ring, size: 4 MB, slices: 8}}",
            "2 s",
            "5 s",
            (*_OF_RANKS, "wrong_results: {at_most: 0}", "state_restored: yes"),
        ),
        Template(
            "training",
            "a job of training iterations, compute and gradients: what its iterations feel",
            f"job:\n{_BOTH_PLANES}  training: {{compute: 120 ms, data: GPUS, data_size: 2 MB}}",
            "2 s",
            "5 s",
            (*_OF_RANKS, "wrong_results: {at_most: 0}", "state_restored: yes"),
        ),
        Template(
            "client",
            "a program that knows nothing of hpn (iperf3 here, docs/clients.md): what it feels",
            "workload:\n  client: {run: iperf3, protocol: udp, rate: 50M}",
            "2 s",
            "5 s",
            (*_OF_RANKS, "state_restored: yes"),
        ),
        Template(
            "baseline",
            "streams and no fault: what this machine adds by itself",
            "workload: {pattern: permutation, queue_pairs: 4, load: LOAD}  # WHY",
            "10 s",
            "0 ms",
            ("packets_lost: {at_most: 0}", "queue_pair_deaths: {at_most: 0}", "state_restored: yes"),
            breaks=False,
            streams=True,
        ),
    ),
    of=Template,
)
"""Templates that ``hpn drill new`` offers."""
