"""Drills of the library on fabrics that are drawn anew for each commit, in virtual time: no verdict without a cause.

The seed is the commit, or STRANGERS; it is printed. Ten drills on five fabrics, streams and jobs, both datapaths:
all of them with STRANGERS_RUNS=10; CI runs six, ``make test`` four.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hpn.results.judge.verdict import Outcome
from hpn.results.run.folder import load
from hpn.scenarios.drill import catalogue
from hpn.scenarios.model.offered import planned_load
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import Plain
from tests.product.hpn import skip_without_virtual_time
from tests.strangers import draw
from tests.strangers.making import ROOT, drill_run
from tests.strangers.oracle.jobs import hardships
from tests.strangers.oracle.judge import judge
from tests.strangers.oracle.story import Story

STREAMS = (
    "link-down", "link-flap", "nic-down", "tor-crash", "agg-crash", "host-down", "admin-down-host",
    "admin-down-switch", "plane-down", "two-links-at-once",
)  # fmt: skip
"""Of those that hold for any fabric: some others demand an outage, which a fabric with more ways does not have."""
JOBS = ("link-down-allreduce", "link-flap-training", "port-failover", "port-failover-off", "job-restarts")
_FABRICS = (
    ("hpn", "nft"), ("dual-tor-clos", "kernel"), ("hpn", "kernel"), ("single-tor", "nft"), ("dcn-plus", "kernel"),
)  # fmt: skip
_PORT_BPS = 200_000_000
"""What the jobs of the library are made for."""
_TRIES = 20
_RUNS = int(os.environ.get("STRANGERS_RUNS", "4"))


class Drawn(NamedTuple):
    """A drill of the library on a drawn fabric."""

    name: str
    topology: dict[str, Plain]
    job: bool


def seed() -> str:
    """Of this commit."""
    told = os.environ.get("STRANGERS")
    if told is None:
        git = ("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD")
        told = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return told or "no commit"


def drawn(of: str) -> Iterator[Drawn]:
    """Ten of them: a stream drill and a job on each of five fabrics."""
    dice = random.Random(f"library/{of}")
    for number, (architecture, lag) in enumerate(_FABRICS):
        for names, job in ((STREAMS, False), (JOBS, True)):
            yield _one_that_fits(dice, names, f"{of}/{number}", architecture, lag, job=job)


def _one_that_fits(
    dice: random.Random, names: Sequence[str], of: str, architecture: str, lag: str, *, job: bool
) -> Drawn:
    """A drill whose faults have a meaning on a fabric that carries its load while it is healthy: hpn refuses others."""
    for attempt in range(_TRIES):
        topology = draw.plain_fabric(f"{of}/{attempt}", architecture, lag)
        if job:
            topology["scale"] = draw.spec_of(topology).nic_port_rate // _PORT_BPS
        for name in dice.sample(names, len(names)):
            try:
                load = planned_load(catalogue.load(name, draw.spec_of(topology)))
            except InputError:
                continue
            if load is None or not load.overloaded(0):
                return Drawn(name, topology, job)
    raise AssertionError(f"none of {names} fits {_TRIES} fabrics of {architecture}")


def numbers(*, job: bool) -> range:
    """Of the drills with streams or with jobs, as many as this run makes."""
    return range(int(job), _RUNS, 2)


def run_one(number: int, folder: Path) -> None:
    """Run a drill of this commit's; AssertionError where its verdict lacks a cause, or has a wrong one."""
    skip_without_virtual_time()
    each = list(drawn(seed()))[number]
    mine = folder / "mine.yaml"
    mine.write_text(draw.text_of(each.topology))
    told = f"STRANGERS={seed()}, drill {number}: {each.name} on\n{mine.read_text()}"
    print(told)
    made = drill_run(str(number), folder / "out" / each.name, (each.name, "--topology", str(mine)), folder)
    assert not made.trouble, f"{told}{made.trouble}"
    verdict = load(made.run).verdict()
    unsaid = [check.text for check in verdict.checks if check.outcome is Outcome.INCONCLUSIVE and not check.evidence]
    assert (verdict.reasons, unsaid) == ((), []), told
    if each.job:
        explained = verdict.outcome is not Outcome.FAIL or hardships(made.run)
        assert explained, f"{told}failed, and nothing stood in its way"
    else:
        assert judge(Story.read(made.run)).defects == [], told
