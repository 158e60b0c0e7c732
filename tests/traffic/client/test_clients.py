"""Where a client's ranks are, and what is run for them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.plan import Starts
from hpn.traffic.client.ranks import ranks_of
from hpn.traffic.client.registry import CLIENTS

SITE = Site(Path("/drills"), sys.executable)


def _command(**keys: object) -> Client:
    return CLIENTS["command"].model_validate({"run": "command", **keys}, strict=True)


def test_a_rank_is_in_every_active_host_or_at_every_nic() -> None:
    fabric = build(PRESETS["small"].spec)
    of_hosts = ranks_of(fabric, None)
    assert [rank.host for rank in of_hosts] == [host.name for host in fabric.hosts if not host.spare]
    assert [rank.rank for rank in of_hosts] == list(range(len(of_hosts)))
    of_nics = ranks_of(fabric, None, "nic")
    assert len(of_nics) > len(of_hosts)
    assert of_nics[1].host == of_nics[0].host
    assert {rank.interface for rank in ranks_of(fabric, 2, rail=1)} == {"bond1"}


def test_ranks_that_find_no_room_are_refused() -> None:
    fabric = build(PRESETS["tiny"].spec)
    with pytest.raises(InputError, match="5 ranks need 5 hosts and the fabric has 4"):
        ranks_of(fabric, 5)
    with pytest.raises(InputError, match="no rail 3"):
        ranks_of(fabric, None, rail=3)


def test_a_command_runs_once_for_every_rank() -> None:
    client = _command(command=["{python}", "{here}/mine.py", "{programs}/ring.py"], reports="first", env={"A": "b"})
    plan = client.plan(ranks_of(build(PRESETS["tiny"].spec), 3), SITE)
    assert [process.ranks for process in plan.processes] == [(0,), (1,), (2,)]
    argv = plan.processes[0].argv
    assert argv[:2] == (sys.executable, "/drills/mine.py")
    assert argv[2].endswith("/traffic/client/programs/ring.py")
    assert (plan.reporting, plan.starts, plan.processes[2].env["A"]) == ((0,), Starts.READY, "b")


def test_a_command_that_is_not_there_is_named_with_a_way_out() -> None:
    missing = _command(command=["no-such-program"]).missing(SITE)
    assert missing is not None
    assert "'no-such-program' is not in PATH; install it" in missing
    assert _command(command=["{python}"]).missing(SITE) is None


def test_every_client_says_what_it_is() -> None:
    for key, client in CLIENTS.items():
        assert key == client.KEY
        assert client.SUMMARY
        assert not client.SUMMARY.endswith(".")


def test_a_client_that_forgets_something_cannot_be_listed() -> None:
    class Half(Client):
        KEY = "half"

    with pytest.raises(TypeError, match="client Half does not say its SUMMARY, missing, plan"):
        CLIENTS.add(Half)  # type: ignore[type-abstract]  # that it is not whole is the point
