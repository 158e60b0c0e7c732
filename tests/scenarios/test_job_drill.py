"""A drill that runs a job, wherever its kind makes a difference: loads, room on disk, manifest, expectations."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from hpn.failover.analysis.job import Death, Iteration, JobFacts, JobMetrics, MessageTimes, SpanFact
from hpn.failover.analysis.metrics.job import job_metrics
from hpn.failover.analysis.settings import Settings
from hpn.scenarios.drill.catalogue import find
from hpn.scenarios.drill.job import JobSpec, plan_of
from hpn.scenarios.drill.job_settings import told
from hpn.scenarios.drill.load import drill_from, load_drill
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import queue_pairs_of
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.figure import Figure
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.run import disk_space
from hpn.scenarios.run.calibrate import Calibration, check
from hpn.scenarios.run.phase import in_phase
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.spec import SecondClassSpec
from hpn.testbed.files.document import parse
from hpn.traffic.congestion.parameter_sets import PARAMETERS
from hpn.traffic.job.collective import CollectiveWork
from hpn.traffic.job.restart import RestartPolicy
from hpn.traffic.job.standby import Replaced
from hpn.traffic.jobengine.records import MESSAGE, SPAN
from hpn.traffic.transport.port_recovery import PortRecovery
from tests.scenarios.measured import metrics

MS = 10**6
HEAD = "drill: d\nsummary: s\ntopology: tiny\n"
EXPECT = "timeline: {healthy: 2 s}\nexpect:\n  - "


def _job(section: str, expect: str = "iteration_time: {below: 300 ms}") -> Drill:
    return drill_from(parse(f"{HEAD}job: {section}\n{EXPECT}{expect}\n", "d.yaml"), Path())


JOB = _job("{collective: {kind: all-reduce, size: 1 MB}, tick: 2 ms}")


def test_a_machine_s_calibration_is_of_streams() -> None:
    """A job sends no faster than its acknowledgements come."""
    poor = Calibration(1.0, 1.0, 1.0)
    check(JOB, poor)
    with pytest.raises(MachineError, match="calibrated for 1;"):
        check(replace(JOB, job=None), poor)


def test_queue_pairs_of_one_nic_take_no_more_room_than_their_port_lets_through() -> None:
    fabric = build(JOB.topology)
    one, eight = (
        queue_pairs_of(replace(JOB, job=replace(JOB.job or JobSpec(CollectiveWork("", 1)), queue_pairs=count)), fabric)
        for count in (1, 8)
    )
    assert len(eight) == 8 * len(one)
    wanted = disk_space.job_record_bytes(one, 10**10, keep=False)
    assert disk_space.job_record_bytes(eight, 10**10, keep=False) == wanted
    assert disk_space.job_record_bytes(one, 10**10, keep=True) == 2 * wanted
    nics = {pair.src_nic: pair.rate_pps for pair in one}
    assert wanted == pytest.approx(sum(nics.values()) * 10 * 256, rel=1e-6)


def test_a_drill_s_tick_is_that_of_what_it_runs() -> None:
    assert JOB.tick_ns == 2 * MS
    assert replace(JOB, job=None).tick_ns == MS


def test_the_manifest_says_how_a_job_was_connected() -> None:
    section = "{collective: {kind: all-reduce, size: 1 MB}, recovery: selective-repeat, ib_timeout: 10, retry_count: 3,"
    section += " congestion: swift-2020, stretch: 20, queue_pairs: 4, queue_pair_choice: in-turn, split: yes}"
    job = _job(section).job
    assert job is not None
    said = told(job, build(JOB.topology))
    wait_ms = 4.096e-3 * 2**10
    assert said["recovery"] == "selective-repeat"
    assert (said["retry_timer"], said["ib_timeout"], said["retry_count"]) == ("ib", 10, 3)
    assert said["first_wait_ms"] == said["longest_wait_ms"] == pytest.approx(wait_ms)
    assert said["patience_ms"] == pytest.approx(4 * wait_ms)
    assert said["congestion"] == "swift-2020"
    assert {key for key in said if key.startswith("congestion ")} == {
        f"congestion {field.name}" for field in fields(PARAMETERS["swift-2020"].values)
    }
    assert (said["congestion_slower"], said["congestion_longer"]) == (JOB.topology.scale, 20)
    assert (said["queue_pairs"], said["queue_pair_choice"], said["split"]) == (4, "in-turn", True)
    assert told(job.slowed(10), build(JOB.topology))["congestion_slower"] == 10 * JOB.topology.scale


COLLECTIVE = "collective: {kind: all-reduce, size: 1 MB}"


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (COLLECTIVE + ", hosts: 1, gpus: 1", "needs at least two different ranks"),
        (COLLECTIVE + ", hosts: 1", "no rank sends anything over the network"),
        (COLLECTIVE + ", hosts: 5", "the job asks for 5 hosts and the fabric has 4 active ones"),
        (COLLECTIVE + ", gpus: 3", "asks for 3 GPUs on p0.s0.h0, which has 2"),
        (COLLECTIVE + ", segments: 9", "over 9 segments; the fabric has 2 segments"),
        (
            "collective: {kind: all-reduce, size: 1 MB, algorithm: hierarchical, ways: 3}",
            "needs the same rails at every",
        ),
        ("collective: {kind: all-reduce, size: 1 MB, among: rail, ways: 4}", "needs at least two different ranks"),
        ("messages: {pattern: cross-rail, size: 1 MB}, gpus: 1", "needs two rails; raise gpus"),
        ("messages: {pattern: incast, size: 1 MB, fan_in: 7}", "an incast of 7 to 1 does not fit a rail of 4 GPUs"),
        ("training: {compute: 10 ms, data: 3, data_size: 1 MB}", "is 3 ranks; the job has 8 GPUs"),
        ("training: {compute: 10 ms, data: 8, data_size: 0 B}", "gradients need data_size of at least 1 B"),
        ("training: {compute: 10 ms, data: 8, data_size: 1 MB, expert: 3, expert_size: 1 B}", "does not divide data 8"),
        (COLLECTIVE + ", checkpoints: {size: 1 MB, every: 1 s, storage: [nobody]}", "no node 'nobody' in this fabric"),
        (COLLECTIVE + ", checkpoints: {size: 1 MB, every: 1 s, storage: [p0.s0.t0.0]}", "p0.s0.t0.0 is no host"),
        (COLLECTIVE + ", ib_timeout: 8", "write retry_timer: ib with ib_timeout: 9 or more"),
        (COLLECTIVE + ", retry_timer: adaptive, tick: 5 ms", "waits 2 ms at first, and at the lab's rates"),
    ],
)
def test_a_job_that_does_not_fit_is_told_with_its_line_and_nothing_else(section: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        _job(f"{{{section}}}")
    (problem,) = caught.value.problems
    assert problem.startswith("d.yaml:4: job: ")
    assert words in problem


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("messages: {pattern: cross-rail, size: 1 MB}", "gpus: 1"), 6),
        (("messages: {pattern: incast, size: 1 MB, fan_in: 7}", "gpus: 1"), 5),
        ((COLLECTIVE, "order: random", "hosts: 5"), 7),
        ((COLLECTIVE, "gpus: 3"), 6),
        ((COLLECTIVE, "hosts: 2", "segments: 9"), 7),
        ((COLLECTIVE, "hosts: 1", "gpus: 1"), 5),
        ((COLLECTIVE, "checkpoints: {size: 1 MB, every: 1 s, storage: [nobody]}"), 6),
        ((COLLECTIVE, "ib_timeout: 8"), 6),
        ((COLLECTIVE, "hosts: 4", "retry_timer: adaptive", "tick: 5 ms"), 7),
    ],
)
def test_what_does_not_fit_is_told_at_the_line_of_its_key(keys: tuple[str, ...], line: int) -> None:
    with pytest.raises(InputError) as caught:
        _job("".join(f"\n  {key}" for key in keys))
    assert caught.value.problems[0].startswith(f"d.yaml:{line}: job: ")


TRAINING = (("compute", "10 ms"), ("tensor", "2"), ("data", "4"), ("data_size", "1 MB"))


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"data": "3"}, [8]),
        ({"expert": "3"}, [10]),
        ({"tensor": "8", "data": "1"}, [7]),
        ({"data": "2", "pipeline": "2"}, [10]),
        ({"data": "2", "pipeline": "2", "pipeline_size": "0 B"}, [11]),
        ({"data_size": "3 B"}, [9]),
        ({"data_size": "3 B", "stragglers": "[{rank: 7, extra: 1 ms}, {rank: 8, extra: 1 ms}]"}, [9, 10]),
        (
            {
                "data_size": "3 B",
                "expert": "3",
                "stragglers": "\n    - {rank: 9, extra: 1 ms}\n    - {rank: 8, extra: 1 ms}",
            },
            [9, 10, 12, 13],
        ),
    ],
)
def test_each_mistake_of_a_training_is_told_at_the_line_of_its_own_key(given: dict[str, str], lines: list[int]) -> None:
    keys = dict(TRAINING) | given
    with pytest.raises(InputError) as caught:
        _job("\n  training:" + "".join(f"\n    {key}: {value}" for key, value in keys.items()))
    assert [problem.split(": ")[:3] for problem in caught.value.problems] == [
        [f"d.yaml:{line}", "job", "training"] for line in lines
    ]


@pytest.mark.parametrize("size", ["1 B", "4095 B", "4096 B", "4097 B", "2 GiB"])
def test_messages_of_any_size_are_good_input(size: str) -> None:
    assert _job(f"{{messages: {{pattern: same-rail, size: {size}}}, gpus: 1}}").job is not None


def test_checkpoints_have_the_dscp_of_the_second_class_and_nothing_else_has() -> None:
    """In either direction of a pair of ranks; grants too."""
    for congestion in ("line-rate", "nccl-4mb"):
        job = (
            f"{{{COLLECTIVE}, congestion: {congestion}, checkpoints: {{size: 1 MB, every: 1 s, storage: [p0.s0.h0]}}}}"
        )
        drill = _job(job)
        divided = drill.topology.model_copy(update={"second_class": SecondClassSpec(dscp=10, share=0.2)})
        assert drill.job is not None
        for topology, dscp in ((drill.topology, 0), (divided, 10)):
            plan = plan_of(drill.job, build(topology))
            for pair in plan.queue_pairs:
                assert pair.dscp == (dscp if {pair.source, pair.target} & plan.background else 0)
            assert {pair.dscp for pair in plan.queue_pairs} == {0, dscp}
            assert ("second_class_dscp" in told(drill.job, build(topology))) == (dscp == 10)


@pytest.mark.parametrize(
    ("drill", "acts"),
    [
        ("incast-dcqcn", True),
        ("paths-elephants-plb", True),
        ("incast-trimmed", True),
        ("incast-swift", False),
        ("incast-pfc-hpcc", False),
        ("incast-receiver-driven", False),
        ("link-down-allreduce", False),
    ],
)
def test_marks_change_what_dcqcn_and_plb_send_and_nothing_else(drill: str, acts: bool) -> None:
    loaded = load_drill(find(drill))
    assert loaded.job is not None
    assert plan_of(loaded.job, build(loaded.topology)).acts_on_marks == acts
    assert loaded.job.controls_queues == drill.startswith("incast")


@pytest.mark.parametrize("hosts", [3, 5, 7])
def test_ranks_of_any_number_are_good_input(hosts: int) -> None:
    text = f"{HEAD}job: {{{COLLECTIVE}, hosts: {hosts}, gpus: 1}}\n{EXPECT}job_survives: yes\n"
    text = text.replace("topology: tiny", "topology: {preset: tiny, hosts: 4}")
    drill = drill_from(parse(text, "d.yaml"), Path())
    assert len(queue_pairs_of(drill, build(drill.topology))) == hosts


def _pairs(drill: Drill) -> list[tuple[str, str]]:
    return [(pair.src_nic, pair.dst_nic) for pair in queue_pairs_of(drill, build(drill.topology))]


def test_who_sends_to_whom_is_drawn_by_the_topology_s_seed_and_is_the_same_in_every_repeat() -> None:
    drill = _job("{messages: {pattern: permutation, size: 1 KB}, order: random}")
    others = [replace(drill, topology=drill.topology.model_copy(update={"seed": seed})) for seed in range(2, 12)]
    assert any(_pairs(other) != _pairs(drill) for other in others)
    assert all(_pairs(in_phase(drill, number)) == _pairs(drill) for number in range(2, 12))


def test_timers_that_a_slower_kernel_outruns_are_told_before_anything_runs() -> None:
    drill = _job(f"{{{COLLECTIVE}, retry_timer: adaptive}}")
    fabric = build(drill.topology)
    assert queue_pairs_of(drill, fabric)
    with pytest.raises(InputError, match="all would be sent again"):
        queue_pairs_of(drill.slowed(10), fabric)


def _figure(key: str, job: JobMetrics) -> Figure:
    drill = _job("{collective: {kind: all-reduce, size: 1 MB}}", f"{key}: {{below: 300 ms}}")
    metric = METRICS[key]
    assert drill.expectations[0].metric is metric
    return metric.measure(drill.expectations[0], Evidence(replace(metrics((), ()), job=job), RunFacts()))


def _measured(open_ms: float) -> JobMetrics:
    times = MessageTimes(1, 1, 1.0, 1.0, 1.0)
    return JobMetrics(2, 2, 0.5, (Iteration(0, 0, 100 * MS, 0),), 100.0, (), times, (), 10, 0, (), 0, {}, 0, open_ms)


def test_an_iteration_that_never_ends_is_the_longest_of_the_run() -> None:
    """Nothing failed, and so there is no edge that it could stand at."""
    assert _figure("iteration_time", _measured(50.0)).value == 100
    stuck = _figure("iteration_time", _measured(2000.0))
    assert (stuck.value, stuck.open_ended, stuck.never) == (1999.5, True, False)
    dead = replace(_measured(50.0), deaths=(Death(120 * MS, "a>b#0", 100 * MS, None, 0),))
    assert _figure("iteration_time", dead).never


def _figured(key: str, job: JobMetrics) -> Figure:
    drill = _job("{collective: {kind: all-reduce, size: 1 MB}}", f"{key}: {{below: 30 %}}")
    metric = METRICS[key]
    return metric.measure(drill.expectations[0], Evidence(replace(metrics((), ()), job=job), RunFacts()))


def test_what_is_sent_of_notifications_and_not_handled_is_lost() -> None:
    counters = {"a": {"np_cnp_sent": 40, "rp_cnp_handled": 3}, "b": {"rp_cnp_handled": 35}}
    assert _figured("cnps_lost", replace(_measured(0), counters=counters)).value == pytest.approx(5)
    assert _figured("cnps_lost", _measured(0)).value is None


def test_shares_are_as_far_apart_as_the_one_that_is_farthest_from_the_mean() -> None:
    """Queue pairs 4, 9 and 11 have 3, 1 and 2 KB done."""
    done = np.zeros(6, MESSAGE)
    done["flow"], done["bytes"] = [4, 9, 4, 11, 4, 11], 1000
    facts = JobFacts({0: (SpanFact("i", "iteration", 0, 1),)}, 2, 1, 4, 0, {})
    found = job_metrics(facts, np.zeros(0, SPAN), done, (), (0, 1), Settings())
    assert found.messages.apart == pytest.approx(0.5)
    assert _figured("shares_apart", found).value == pytest.approx(50)


_WORK = "collective: {kind: all-reduce, size: 1 MB}"
_FAILOVER = "queue_pairs: 2, port_failover: yes"


def _recovery(section: str) -> str:
    return f"{{{_WORK}, {_FAILOVER}, port_recovery: {section}}}"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (f"{{{_WORK}, port_failover: yes}}", "d.yaml:4: job.port_failover needs another queue pair"),
        (f"{{{_WORK}, port_recovery: yes}}", "d.yaml:4: job.port_recovery brings back what port failover has left"),
        (_recovery("{attempts: 0}"), "d.yaml:4: job.port_recovery.attempts is 0"),
        (_recovery("{backoff: 0.9}"), "d.yaml:4: job.port_recovery.backoff is 0.9"),
        (_recovery("{longest: 60 s}"), "d.yaml:4: job.port_recovery.longest limits a back-off; write backoff: 2"),
        (_recovery("{backoff: 2, longest: 4 s}"), "d.yaml:4: job.port_recovery.longest: 4 s is out of range"),
        (_recovery("{over: rc}"), "d.yaml:4: job.port_recovery.over is 'rc'; write one of uc, ud"),
        (_recovery("5"), "d.yaml:4: job.port_recovery is 5; write yes, no, or {attempts: 5, ...}"),
        (
            f"{{{_WORK}, port_use: active-passive}}",
            "d.yaml:4: job.port_use is 'active-passive'; write one of active-active, active",
        ),
        (f"{{{_WORK}, port_use: active-standby}}", "d.yaml:4: job.port_use: active-standby never uses its standby"),
        (
            f"{{{_WORK}, {_FAILOVER}, port_use: active-standby, source_ports: hash}}",
            "d.yaml:4: job.port_use: active-standby needs queue pairs at known ports; write source_ports: one of",
        ),
        (f"{{{_WORK}, restart: {{after: 0 s}}}}", "d.yaml:4: job.restart.after"),
        (f"{{{_WORK}, restart: {{after: 2 s, checkpoint_every: 0}}}}", "d.yaml:4: job.restart.checkpoint_every"),
        (f"{{{_WORK}, restart: {{checkpoint_every: 2}}}}", "d.yaml:4: 'after' is missing in job.restart"),
        (f"{{{_WORK}, restart: {{after: 2 s, spares: -1}}}}", "d.yaml:4: job.restart.spares is -1"),
        (
            f"{{{_WORK}, restart: {{after: 900 ms, spares: 1}}}}",
            "d.yaml:4: job.restart.after is 900 ms, and to",
        ),
        (f"{{{_WORK}, restart: {{after: 2 s, watchdog: 0 s}}}}", "d.yaml:4: job.restart.watchdog"),
        (
            "{training: {compute: 1 s, stragglers: [{rank: 1, extra: 1 s}]}, restart: {after: 2 s, watchdog: 2 s}}",
            "d.yaml:4: job.restart.watchdog is 2 s, and a rank computes that long alone; write more than 2 s",
        ),
        (f"{{{_WORK}, restart: {{after: 2 s, spares: 1}}}}", "d.yaml:4: job.restart.spares is 1 and the fabric has 0"),
        (f"{{{_WORK}, samples: -1}}", "d.yaml:4: job.samples"),
    ],
)
def test_what_makes_no_sense_of_a_job_s_life_is_told_with_its_place(section: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        _job(section)


@pytest.mark.parametrize(
    ("topology", "queue_pairs", "message"),
    [
        ("{preset: tiny, architecture: single-tor}", 2, "d.yaml:4: job: port_use: NICs with one port have no standby"),
        ("tiny", 3, "d.yaml:4: job: port_use: 3 queue pairs for 2 ports; write a multiple as queue_pairs"),
    ],
)
def test_a_standby_needs_a_port_of_its_own(topology: str, queue_pairs: int, message: str) -> None:
    text = f"{HEAD}job: {{{_WORK}, queue_pairs: {queue_pairs}, port_failover: yes, port_use: active-standby}}\n"
    with pytest.raises(InputError, match=re.escape(message)):
        drill_from(parse(f"{text}{EXPECT}job_survives: yes\n".replace("tiny", topology), "d.yaml"), Path())


def test_port_recovery_is_read_with_nccl_s_defaults() -> None:
    for section, policy in {
        "yes": PortRecovery(),
        "no": None,
        "{}": PortRecovery(),
        "{over: ud, attempts: 7, backoff: 2, longest: 60 s}": PortRecovery(
            over="ud", attempts=7, backoff=2, longest_ns=60 * 10**9
        ),
    }.items():
        job = _job(_recovery(section)).job
        assert job is not None
        assert job.port_recovery == policy


def test_what_follows_a_death_is_read() -> None:
    restart = "restart: {after: 2 s, checkpoint_every: 5, watchdog: 1 s}"
    job = _job(f"{{{_WORK}, {restart}, queue_pairs: 2, port_failover: yes}}").job
    assert job is not None
    assert (job.restart, job.port_failover) == (RestartPolicy(2 * 10**9, 5, watchdog_ns=10**9), True)


def test_a_fault_does_not_say_which_spare_a_job_takes() -> None:
    fault = "{id: power, fault: host-replaced, target: p0.s0.h0, at: 2 s, after: 2 s}"
    text = f"{HEAD.replace('tiny', 'tiny-spare')}job: {{{_WORK}}}\n{EXPECT}job_survives: no\n"
    with pytest.raises(InputError, match=r"d.yaml:5: timeline.faults\[0\]: a job finds out by itself which hosts"):
        drill_from(parse(text.replace("2 s}", f"2 s, settle: 2 s, faults: [{fault}]}}", 1), "d.yaml"), Path())


def _died(restarted_at_ns: int | None) -> JobMetrics:
    return replace(_measured(0.0), deaths=(Death(150 * MS, "a>b#0", 100 * MS, restarted_at_ns, 1),))


def test_hosts_that_spares_took_over_from_are_counted() -> None:
    asked = _job("{collective: {kind: all-reduce, size: 1 MB}}", "hosts_replaced: {at_least: 1}").expectations[0]
    moved = Death(150 * MS, "a>b#0", 100 * MS, 300 * MS, 1, (Replaced("a", "c", (0,)), Replaced("b", "d", (1, 2))))
    for deaths, count in (((), 0), ((moved,), 2), ((moved, replace(moved, replaced=())), 2)):
        seen = Evidence(replace(metrics((), ()), job=replace(_measured(0.0), deaths=deaths)), RunFacts())
        assert asked.metric.measure(asked, seen).value == count


def test_a_death_is_counted_with_its_new_start() -> None:
    once = _job("{collective: {kind: all-reduce, size: 1 MB}}", "job_restarts: {at_least: 1}").expectations[0]
    for at_ns, count in ((None, 0), (300 * MS, 1)):
        seen = Evidence(replace(metrics((), ()), job=_died(at_ns)), RunFacts())
        assert once.metric.measure(once, seen).value == count
