"""Loads of a pod's ToRs before, during and after a ToR crash, and iteration time by job size. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpn.results.graph.loadmap import Grid, Panel
from hpn.results.graph.sizes import Course
from hpn.scenarios.model.month.job import ModelledJob
from hpn.scenarios.model.month.job_network import PodNetwork
from hpn.scenarios.model.month.month import MonthRequest, check_memory, network_of
from hpn.traffic.fluid.flows import drawn, permutation, ring
from hpn.traffic.fluid.pace import Paced, after, healthy, unnoticed
from hpn.traffic.fluid.pods import Pods
from hpn.traffic.fluid.routes import FailedParts, Flags
from hpn.traffic.fluid.solve import Floats

_TIERS = (("NIC ports, down", 1), ("NIC ports, up", 0), ("uplinks, up", 2), ("uplinks, down", 3))


@dataclass(frozen=True, slots=True)
class Crash:
    """Crashing ToR of the first pod, by its place."""

    segment: int
    rail: int
    index: int

    def number(self, pods: Pods) -> int:
        """Return its number among all ToRs."""
        return (self.rail * pods.pods * pods.segments + self.segment) * pods.tors + self.index


LOAD = 0.45
"""Load of each NIC, so that one port alone can carry it and moved traffic is visible."""
CRASH = Crash(segment=7, rail=2, index=0)


def load_map_of(asked: MonthRequest) -> str:
    """Return the title of the panels."""
    where = f"p0.s{CRASH.segment}.t{CRASH.rail}.{CRASH.index}"
    return (
        f"MODELLED: {asked.networks[0]}, a permutation on each rail at {LOAD:.0%} of each NIC, as ToR {where} crashes"
    )


def load_panels(asked: MonthRequest, available_bytes: float, crash: Crash = CRASH) -> list[Panel]:
    """Return the panels of a permutation on each rail of the first network: healthy, at the crash, after all moves."""
    network = asked.networks[0]
    pods = Pods.of(network_of(network).spec(asked.spec))
    check_memory(pods, pods.gpus * asked.queue_pairs, 0, available_bytes)
    flows = drawn(pods, permutation(pods, asked.seed), asked.queue_pairs, asked.seed, "even")
    well = healthy(pods, flows, LOAD * pods.port_bps * pods.tors / asked.queue_pairs)
    broken = FailedParts.nothing(pods).with_tor(crash.number(pods))
    moved = after(well, broken, path_control=network_of(network).path_control)
    dead = broken.dead_links(pods)
    nothing = np.zeros_like(dead)
    return [
        _panel("before", well, nothing),
        _panel("while nobody knows", unnoticed(well, broken), dead),
        _panel("after", moved, dead),
    ]


def job_courses(asked: MonthRequest, available_bytes: float) -> list[Course]:
    """Return the iteration time in s by job size with random hosts, without faults and with one link cut."""
    found = []
    for network in asked.networks:
        pods = Pods.of(network_of(network).spec(asked.spec))
        check_memory(pods, pods.gpus * asked.queue_pairs, 0, available_bytes)
        jobs = [_by_lot(pods, gpus, asked, path_control=network_of(network).path_control) for gpus in _sizes(pods)]
        found.append(Course(network, tuple((job.network.gpus, job.iteration_s) for job in jobs)))
        if jobs[0].network.has_another_way:
            cut = tuple((job.network.gpus, job.iteration_s * job.stretch_of_a_cut) for job in jobs)
            found.append(Course(f"{network}, one link cut", cut))
    return found


def _sizes(pods: Pods) -> list[int]:
    """Return the job sizes: all of the pods, halved down to 16 hosts."""
    sizes = [pods.gpus]
    while sizes[-1] // 2 >= 16 * pods.rails:
        sizes.append(sizes[-1] // 2 // pods.rails * pods.rails)
    return sizes[::-1]


def _by_lot(pods: Pods, gpus: int, asked: MonthRequest, *, path_control: bool) -> ModelledJob:
    hosts = np.random.default_rng(asked.seed).permutation(pods.nics_of_a_rail)[: gpus // pods.rails].astype(np.int64)
    flows = drawn(pods, ring(pods, hosts), asked.queue_pairs, asked.seed, "even")
    return ModelledJob(PodNetwork(healthy(pods, flows), gpus, path_control, hosts), asked.given)


def _panel(title: str, paced: Paced, dead: Flags) -> Panel:
    pods = paced.pods
    of = "plane" if pods.planes > 1 else "ToR"
    rows = [f"{of} {port} rail {rail}" for port in range(pods.tors) for rail in range(pods.rails)]
    share = paced.load / pods.capacity()
    grids = []
    for name, block in _TIERS:
        cells = _by_tor(pods, share, dead, block)
        grids.append(Grid(name, tuple(rows), tuple(tuple(row) for row in cells)))
    return Panel(title, float(paced.pair_rates.mean()) / (pods.port_bps * pods.tors), tuple(grids))


def _by_tor(pods: Pods, share: Floats, dead: Flags, block: int) -> list[list[float | None]]:
    """Return the mean load of each ToR's links; None if all are down.

    Rows are by port and rail, columns by segment.
    """
    part = slice(pods.blocks[block], pods.blocks[block + 1])
    if block < 2:
        shape: tuple[int, ...] = (pods.rails, pods.pods * pods.segments, pods.hosts, pods.tors)
        order = (3, 0, 1, 2)
    else:
        shape, order = (pods.rails, pods.pods * pods.segments, pods.tors, pods.aggs), (2, 0, 1, 3)
    by_tor = share[part].reshape(shape).transpose(order).mean(axis=-1).reshape(-1, pods.pods * pods.segments)
    gone = dead[part].reshape(shape).transpose(order).all(axis=-1).reshape(by_tor.shape)
    rows = zip(by_tor, gone, strict=True)
    return [[None if off else float(cell) for cell, off in zip(*row, strict=True)] for row in rows]
