"""Entry point of jobs: ``python -P -m commands.job JOB`` runs a remote task in a guest or process.

A kind of job is a function of its body and its engine, and its name here.
"""

# ruff: noqa: E402  # the signal handler is set before imports, as in ``cli``
from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from pydantic import JsonValue

from hpn.commands import edge
from hpn.scenarios.run.remote_task import RemoteTask, job_from
from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process import cleanup_process, sandbox
from hpn.testbed.vm.engines import EngineSpec, named

Kind = Callable[[JsonValue, EngineSpec], int]
"""Runs a body for an engine, which may differ from the one that runs this kernel; returns the exit code."""

KINDS: Mapping[str, str] = {
    "run": "hpn.commands.drill_runs:run_job",
    "drill": "hpn.commands.drill_runs:pool_job",
    "sequences": "hpn.scenarios.campaign.lab_job:asked",
    "lab": "hpn.scenarios.campaign.lab_job:asked_on",
    "selftest": "hpn.scenarios.selfcheck.selftest.start:asked",
}
"""Module and function of each kind. The module is imported before a guest's clock counts, with all that a job needs."""


def main(arguments: list[str]) -> None:
    """Do the job in the command line."""
    job = job_from(arguments[0])
    cleanup_process.hold(job.held)
    if job.parent:
        sandbox.die_with_parent()
        if os.getppid() != job.parent:
            sys.exit(1)
    edge.run(lambda: kind_of(job), lambda: kind_of(job)(job.body, named(job.engine)))


def kind_of(job: RemoteTask) -> Kind:
    """Import and return the function of such jobs. MachineError for a kind that this hpn does not know."""
    if job.kind not in KINDS:
        raise MachineError(f"no kind of job {job.kind!r}; it comes from another version of hpn")
    module, _, function = KINDS[job.kind].partition(":")
    found: Kind = getattr(import_module(module), function)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
