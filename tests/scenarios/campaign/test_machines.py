"""A campaign on the workers of a dask scheduler: all sequences once, whoever is lost, and no lab left anywhere."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.product.hpn import DEADLINE_S, Hpn, processes_of, skip_without_sandbox, until
from tests.scenarios.pool.dask_cluster import Cluster, cluster

pytest.importorskip("distributed")
WORKERS = ("left", "right")
SOONER_S = 30
"""Far less than ten sequences take, which is what a job of a long campaign has."""


def start(folder: Path, standing: Cluster, sequences: int) -> subprocess.Popen[str]:
    wanted = ("--seed", "3", "--sequences", str(sequences), "--scheduler", standing.address, "--out", "out")
    return Hpn(folder).start("campaign", "run", "tiny", *wanted)


def is_complete(folder: Path, campaign: subprocess.Popen[str], sequences: int) -> None:
    """It ends well, or a busy machine made it inconclusive, and each sequence has one first result."""
    out, err = campaign.communicate(timeout=DEADLINE_S)
    assert campaign.returncode in (0, 4), out + err
    said = [line for line in err.splitlines() if " have ended, about " not in line]
    assert said == ["next: hpn campaign show out"]
    names = sorted(path.name for path in (folder / "out").iterdir())
    assert names == ["campaign.json", "journal.jsonl", "report.html"]
    lines = [json.loads(line)["result"] for line in (folder / "out" / "journal.jsonl").read_text().splitlines()]
    assert sorted(line["sequence"]["index"] for line in lines if line["tries"] == 1) == list(range(sequences))


def nothing_is_left(folder: Path, standing: Cluster, *workers: str) -> None:
    """Of all that was started there are the scheduler and these workers, and no files of a job."""
    until(lambda: len(processes_of(folder)) == 1 + len(workers), "every process of a lab is gone", SOONER_S)
    assert all(standing.processes[name].poll() is None for name in ("scheduler", *workers))
    until(lambda: not any(map(standing.labs, workers)), "the files of every job are gone")


@contextmanager
def busy(folder: Path) -> Iterator[tuple[Cluster, subprocess.Popen[str]]]:
    """A cluster and a long campaign on it; both workers have a job."""
    skip_without_sandbox()
    with cluster(folder, *WORKERS) as standing:
        campaign = start(folder, standing, 100)
        until(lambda: all(map(standing.runs, WORKERS)), "both workers have a job")
        yield standing, campaign


@pytest.mark.timeout(300)
def test_every_sequence_is_run_once_on_two_workers(tmp_path: Path) -> None:
    skip_without_sandbox()
    with cluster(tmp_path, *WORKERS) as standing:
        campaign = start(tmp_path, standing, 4)
        until(lambda: all(map(standing.lab_stands, WORKERS)), "both workers have a lab")
        is_complete(tmp_path, campaign, 4)
        nothing_is_left(tmp_path, standing, *WORKERS)


@pytest.mark.timeout(300)
def test_a_worker_killed_with_its_lab_costs_no_sequence(tmp_path: Path) -> None:
    skip_without_sandbox()
    with cluster(tmp_path, *WORKERS) as standing:
        campaign = start(tmp_path, standing, 2)
        until(lambda: standing.lab_stands("left"), "the lab on the worker stands")
        standing.processes["left"].kill()
        standing.processes["left"].wait()
        is_complete(tmp_path, campaign, 2)
        nothing_is_left(tmp_path, standing, "right")
        (killed,) = standing.labs("left")
        assert b"result" not in (killed / "report.jsonl").read_bytes(), "the lab outlived its worker"
        standing.add("left")
        nothing_is_left(tmp_path, standing, *WORKERS)


@pytest.mark.timeout(300)
def test_a_killed_campaign_leaves_workers_without_labs(tmp_path: Path) -> None:
    with busy(tmp_path) as (standing, campaign):
        campaign.kill()
        campaign.communicate()
        nothing_is_left(tmp_path, standing, *WORKERS)


@pytest.mark.timeout(300)
def test_a_lost_scheduler_ends_the_campaign_and_every_lab(tmp_path: Path) -> None:
    with busy(tmp_path) as (standing, campaign):
        standing.processes["scheduler"].kill()
        standing.processes["scheduler"].wait()
        out, err = campaign.communicate(timeout=DEADLINE_S)
        assert (campaign.returncode, out, err.count("\n")) == (3, "", 1), out + err
        assert "start it and its workers again, then give the same command" in err
        until(lambda: processes_of(tmp_path) == [], "the workers have ended, and every lab", SOONER_S)
