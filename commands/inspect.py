"""Current state of a lab, and NIC counters and collectives of a run."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.table import Table

from hpn.commands.completing import nodes as nodes_of_lab
from hpn.commands.completing import runs
from hpn.commands.page import as_json_option, lab_option, show
from hpn.failover.analysis.job import JobMetrics
from hpn.results.run.folder import load
from hpn.results.text.nccl import json_rows, lines, rows
from hpn.results.text.queues import queues_table
from hpn.results.text.tables import rows_table
from hpn.testbed.errors import InputError
from hpn.testbed.lab.service import control, registry
from hpn.testbed.lab.service.inspect import CABLING, SECTIONS
from hpn.testbed.lab.service.srv6_report import SRV6

_COUNTERS, _COLLECTIVES, _RUN = "counters", "collectives", "run"
_QUEUES = "queues"
_EMPTY = {
    "broken": "nothing is broken; hpn break TARGET breaks a part",
    "missing-routes": "every host route has as many next hops as the links allow",
}


@click.command()
@click.argument("what", required=False, type=click.Choice([*SECTIONS, CABLING, SRV6, _COUNTERS, _COLLECTIVES, _RUN]))
@click.argument("run", required=False, type=click.Path(file_okay=False, path_type=Path), shell_complete=runs)
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="NODE",
    shell_complete=nodes_of_lab,
    help="Of this host or switch alone; may be repeated.",
)
@lab_option
@as_json_option
def inspect(what: str | None, run: Path | None, nodes: tuple[str, ...], lab_name: str | None, as_json: bool) -> None:
    """Show nodes, links, LACP, BGP sessions, routes, ECMP groups and what is broken of a lab as it is now.

    missing-routes: host routes with fewer next hops than whole links allow.

    By name alone: cabling (every port asks by LLDP who is at the other end of its cable) and srv6 (static uSID tables).

    Of the job of a drill, with the RUN folder it left: counters (of each NIC, by their rdma-statistic names) and
    collectives (as nccl-tests prints them). Of any RUN folder: run (what it holds, and what is missing or damaged).
    """
    if what in (_COUNTERS, _COLLECTIVES, _RUN):
        if nodes:
            raise InputError(f"--node is for a lab; {what} is told of a run folder")
        _of_run(what, run, as_json)
        return
    if run is not None:
        raise InputError(
            f"{what} are a lab's: --lab {run} for the lab of that name, --node {run} for one of its nodes;"
            f" of a run folder there are {_COUNTERS}, {_COLLECTIVES} and {_RUN}"
        )
    place, _ = registry.find(lab_name)
    if what:
        found = control.call(place.socket, "inspect", what=what, nodes=list(nodes))
        sections = {what: found}
    else:
        found = sections = control.call_for_object(place.socket, "inspect", nodes=list(nodes))
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        of = f" of {', '.join(nodes)}" if nodes else ""
        show(*(_table(name, rows, _EMPTY.get(name, f"{name}: none{of}")) for name, rows in sections.items()))


def _table(name: str, rows: object, empty: str) -> Table:
    """Return a section for people; ``--json`` has every counter of a queue."""
    return queues_table(name, rows, empty) if name == _QUEUES else rows_table(name, rows, empty)


def _of_run(what: str, run: Path | None, as_json: bool) -> None:
    """Print one section of a run's job."""
    if run is None:
        raise InputError(f"{what} is told of a drill: name its run folder, hpn inspect {what} runs/TIME/DRILL")
    if what == _RUN:
        _show_contents(run, as_json)
        return
    job = load(run).metrics().job
    if job is None:
        raise InputError(f"{run}: this drill ran no job, which alone has {what}")
    collectives = rows(job.spans)
    if as_json:
        click.echo(json.dumps(_counted(job) if what == _COUNTERS else json_rows(collectives), indent=2))
    elif what == _COUNTERS:
        show(rows_table(what, _counted(job)))
    elif collectives:
        click.echo("\n".join(lines(collectives)))
    else:
        raise InputError(f"{run}: no collective of this job was done by all of its ranks")


def _show_contents(run: Path, as_json: bool) -> None:
    """Print the contents of a run folder."""
    from hpn.results.run.reading import read  # numpy
    from hpn.results.text.contents import rows as rows_of

    found = rows_of(read(run))
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        show(rows_table(_RUN, found))


def _counted(job: JobMetrics) -> list[dict[str, str | int]]:
    """Return a row for each NIC; every row has all counters."""
    names = sorted({name for counters in job.counters.values() for name in counters})
    return [{"nic": nic} | {name: of.get(name, 0) for name in names} for nic, of in job.counters.items()]
