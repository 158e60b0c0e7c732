"""What is asked of some nodes is what is told of all, without the others."""

from __future__ import annotations

from typing import cast

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service.control import Json
from hpn.testbed.lab.service.inspect import SECTIONS, report
from tests.lab.running import running, tiny

pytestmark = pytest.mark.kernel

HOST, TOR = "p0.s0.h0", "p0.s0.t0.0"


def _rows(lab: Lab, what: str, *nodes: str) -> list[Json]:
    return cast("list[Json]", report(lab, what, nodes))


def _of(row: Json) -> set[str]:
    """The nodes that a row is about, by what it names them by."""
    if "node" in row:
        return {str(row["node"])}
    if "port" in row:
        return {str(row["port"]).partition(":")[0]}
    return {str(row[end]).partition(":")[0] for end in ("lower", "upper")}


async def test_some_nodes_are_told_as_all_are_and_no_others() -> None:
    async with running(tiny()) as lab:
        for what in ("nodes", "links", "lacp", "bgp", "routes", "ecmp"):
            wanted = [row for row in _rows(lab, what) if _of(row) & {HOST, TOR}]
            assert _rows(lab, what, HOST, TOR) == wanted, what
            assert 0 < len(wanted) < len(_rows(lab, what)), what
        everything = cast("dict[str, list[Json]]", report(lab, "", [TOR]))
        assert everything == {what: _rows(lab, what, TOR) for what in SECTIONS}


async def test_a_broken_part_is_told_of_the_nodes_at_its_ends() -> None:
    async with running(tiny()) as lab:
        link = next(link for link in lab.fabric.links_of(HOST) if link.upper.node == TOR)
        lab.breakage.ports_down([(link, TOR)], by=link.name)
        for node in (HOST, TOR):
            assert [row["part"] for row in _rows(lab, "broken", node)] == [link.name]
        assert _rows(lab, "broken", "p0.s0.h1") == []


async def test_a_node_that_is_none_is_refused_with_its_neighbours_by_name() -> None:
    async with running(tiny(), converge=False) as lab:
        with pytest.raises(InputError, match=r"no node 'p0.s0.h00' in this fabric; did you mean"):
            report(lab, "lacp", ["p0.s0.h00"])
