"""Run an hpn command on workers that Slurm starts, by dask-jobqueue: pip install dask-jobqueue.

    python slurm.py --jobs 20 --interface ib0 --tls certificates -- ci run nightly.yaml --out ci-out
    python slurm.py --jobs 20 --print          # the job script that Slurm would get, and nothing else

Scheduler and hpn run here, on a login node; the environment of this Python must be on every node at the same path, as
in a home that all nodes share. Without --tls anybody who reaches this port can run programs as you.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
from dask_jobqueue import SLURMCluster
from distributed import Client
from distributed.security import Security


def main(arguments: list[str]) -> int:
    """Start the workers, run the command on them, end them; the command's exit code."""
    parser = argparse.ArgumentParser(description="hpn on workers that Slurm starts")
    parser.add_argument("--jobs", type=int, default=4, help="workers, each a Slurm job that makes one run at a time")
    parser.add_argument("--partition")
    parser.add_argument("--walltime", default="02:00:00")
    parser.add_argument("--interface", default="lo", help="network that nodes reach this one by, such as ib0")
    parser.add_argument("--tls", type=Path, help="folder of ca.pem, cert.pem, key.pem, as certificates.sh makes it")
    parser.add_argument("--print", action="store_true", help="only print the job script")
    parser.add_argument("command", nargs="*", help="of hpn, behind --")
    asked = parser.parse_args(arguments)
    # A job that Slurm requeues is away for two minutes or more; dask would cancel it 15 s after it lost the worker.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "7 days"})
    with SLURMCluster(
        queue=asked.partition,
        walltime=asked.walltime,
        cores=1,  # runs at a time in a job
        processes=1,
        job_cpu=2,  # what a run in virtual time takes at most; a run on the host has the machine: use --exclusive then
        memory="4GB",
        death_timeout=300,  # for a node that has a lot to do, or a home that is slow
        interface=asked.interface,
        worker_extra_args=["--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--local-directory", "/tmp"],
        scheduler_options={"dashboard_address": None},
        **secured(asked.tls),
    ) as cluster:
        if asked.print:
            print(cluster.job_script())
            return 0
        cluster.scale(jobs=asked.jobs)
        with Client(cluster) as client:
            if not arrived(client, cluster):
                print("slurm.py: all jobs of workers ended before one had come; look at slurm-*.out", file=sys.stderr)
                return 3
        return run(cluster.scheduler_address, asked.tls, asked.command)


def arrived(client: Client, cluster: SLURMCluster) -> bool:
    """Wait for the first worker, as long as Slurm knows of a job that may be one; others have work when they come."""
    while True:
        try:
            client.wait_for_workers(1, timeout=20)
        except TimeoutError:
            jobs = ",".join(str(job.job_id) for job in cluster.workers.values())
            told = subprocess.run(["squeue", "--noheader", "--jobs", jobs], capture_output=True, text=True)
            if not told.stdout and (not told.returncode or "Invalid job id" in told.stderr):
                return False
        else:
            return True


def secured(folder: Path | None) -> dict[str, Any]:
    """What the cluster needs to talk by TLS alone, to those who show a certificate of the same authority."""
    if folder is None:
        return {}
    certificate, key = str(folder.resolve() / "cert.pem"), str(folder.resolve() / "key.pem")
    names = {f"tls_{role}_{kind}" for role in ("scheduler", "worker", "client") for kind in ("cert", "key")}
    files = {name: certificate if name.endswith("cert") else key for name in names}
    authority = str(folder.resolve() / "ca.pem")
    return {"protocol": "tls://", "security": Security(tls_ca_file=authority, require_encryption=True, **files)}


def run(address: str, tls: Path | None, command: list[str]) -> int:
    """The exit code of hpn, which finds certificates where dask looks for them."""
    options = {} if tls is None else {"ca-file": "ca.pem", "client.cert": "cert.pem", "client.key": "key.pem"}
    name = "DASK_DISTRIBUTED__COMM__TLS__{}"
    environment = {
        name.format(key.upper().replace("-", "_").replace(".", "__")): str((tls or Path()).resolve() / file)
        for key, file in options.items()
    }
    program = [sys.executable, "-m", "hpn", *command, "--scheduler", address]
    return subprocess.run(program, env={**os.environ, **environment}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
