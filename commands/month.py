"""A month of failures on pods and on any topology, by the flow-level model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpn.commands.completing import networks as network_names
from hpn.commands.completing import topologies as topology_names
from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.commands.page import Page, json_option
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.presets import PRESETS

if TYPE_CHECKING:
    from hpn.scenarios.model.month.month import MonthRequest


_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("networks", metavar="[NETWORK]...", nargs=-1, shell_complete=network_names)
@click.option(
    "--topology",
    "topologies",
    multiple=True,
    metavar="NAME|FILE",
    shell_complete=topology_names,
    help="A job on all of its hosts, too; without NETWORK: only there. May be given again.",
)
@click.option("--gpus", type=int, help="GPUs of the job on pods, whole hosts; default: all of them.")
@click.option("--pods", type=click.IntRange(1, 64), default=1, show_default=True, help="Pods of the paper's size.")
@click.option("--queue-pairs", type=click.IntRange(1, 1024), default=16, show_default=True, help="Of each NIC.")
@click.option("--months", type=click.IntRange(1, 1000), default=12, show_default=True, help="Drawn one by one.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True, help="Of all draws.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change an assumption; may be given again.")
@click.option("--load-map", type=_FILE, help="Only draw the loads of the first NETWORK as a ToR crashes, as SVG.")
@click.option("--job-sizes", type=_FILE, help="Only draw an iteration's time by the size of a job, as SVG.")
@click.option("--assumptions", is_flag=True, help="Only list what is assumed, with units and sources.")
@json_option
def month(
    networks: tuple[str, ...],
    topologies: tuple[str, ...],
    gpus: int | None,
    pods: int,
    queue_pairs: int,
    months: int,
    seed: int,
    changes: tuple[str, ...],
    load_map: Path | None,
    job_sizes: Path | None,
    assumptions: bool,
    as_json: bool,
) -> None:
    """Say what a month of failures costs a training job that fills a network: modelled, not measured.

    NETWORK is hpn, hpn-no-path-control, hpn-four-planes, hpn-eight-planes, dual-tor-clos, stacked-dual-tor or
    single-tor; default: each. Planes share the NIC's rate. Links and ToRs fail as often as the HPN paper says, links
    flap; a synchronous job with a ring on every rail goes slower, stalls or crashes. Lost are GPU hours of full speed:
    mean of the months, and least to most.

    \b
    hpn month --assumptions
    hpn month --topology small --topology mine.yaml
    hpn month hpn single-tor --set flaps_a_day=60000 --set link_repair_h=8
    """
    from hpn.results.text.month import assumptions_table, month_table, told_changes
    from hpn.scenarios.model.month.assumptions import told, with_set
    from hpn.scenarios.model.month.failures import MONTH_H
    from hpn.scenarios.model.month.month import (  # numpy, which other commands need not load
        NETWORKS,
        MonthRequest,
        reckon,
    )
    from hpn.testbed.fabric.load import load_fabric
    from hpn.testbed.lab.service.preflight import available_memory

    page, given = Page(as_json), with_set(changes)
    if assumptions:
        page.show(assumptions_table(told(given)))
        page.end(lambda: {"assumptions": [asdict(line) for line in told(given)]})
        return
    cores = PRESETS["pods"].spec.cores if pods > 1 else 0
    spec = PRESETS["pod"].spec.model_copy(update={"pods": pods, "cores": cores})
    names = networks if networks or topologies else NETWORKS
    fabrics = [load_fabric(each) for each in dict.fromkeys(topologies)]
    asked = MonthRequest(tuple(dict.fromkeys(names)), fabrics, spec, gpus, queue_pairs, months, seed, given)
    available = available_memory() or float("inf")
    if topologies and (load_map is not None or job_sizes is not None or (gpus is not None and not networks)):
        raise InputError("--load-map, --job-sizes and --gpus are about pods; name a NETWORK, or leave --topology out")
    if load_map is not None or job_sizes is not None:
        _draw(asked, available, load_map, job_sizes)
        return
    found = list(reckon(asked, available, page.tell))
    page.show(month_table(found, f"MODELLED: a month of {MONTH_H:.0f} hours, GPU hours lost; {months} drawn"))
    page.tell(told_changes(told(given)))
    page.end(lambda: {"networks": [asdict(each) for each in found], "assumptions": [asdict(x) for x in told(given)]})
    tell_next("month", quiet=as_json, changes=changes)


def _draw(asked: MonthRequest, available: float, load_map: Path | None, job_sizes: Path | None) -> None:
    from hpn.results.graph.loadmap import load_map_svg
    from hpn.results.graph.sizes import sizes_svg
    from hpn.scenarios.model.month.loads import job_courses, load_map_of, load_panels

    if load_map is not None:
        panels = load_panels(asked, available)
        write(load_map, load_map_svg(load_map_of(asked), panels), "--load-map")
    if job_sizes is not None:
        title = "MODELLED: an iteration by the size of a job, its hosts drawn by lot"
        write(job_sizes, sizes_svg(title, job_courses(asked, available)), "--job-sizes")
