"""Another LACP than Linux bonding's as judge: teamd (libteam) as the host's LAG, our speakers as its two ToRs.

Skipped where there is no teamd or no team driver; ``tests/vm`` runs it in a guest with the distribution's kernel.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hpn.testbed.events import Event
from hpn.testbed.lag.config import LacpConfig, PortConfig
from hpn.testbed.lag.lacpdu import PortState
from hpn.testbed.lag.speaker import Speaker, SystemAt
from hpn.testbed.lag.states import Rx
from tests.lag import rack
from tests.lag.rack import PORTS, Rack

pytestmark = pytest.mark.kernel
SHARED = "00:00:5e:00:01:01"
BOTH_WAYS = PortState.COLLECTING | PortState.DISTRIBUTING
PATIENCE_S, _LOOK_S = 30.0, 0.2


def load_driver() -> None:
    """Have the team driver in user-mode Linux, whose modules no modprobe finds; elsewhere nothing is loaded."""
    folder = Path("/usr/lib/uml/modules") / os.uname().release / "kernel/drivers/net/team"
    for name in ("team", "team_mode_loadbalance"):
        subprocess.run(["insmod", str(folder / f"{name}.ko")], capture_output=True, check=False)


@contextmanager
def teamd(where: Rack, folder: Path) -> Iterator[None]:
    """teamd's LACP runner on the rack's host, fast; it takes no port that is up."""
    if shutil.which("teamd") is None:
        pytest.skip("no teamd: apt install libteam-utils")
    load_driver()
    runner = {"name": "lacp", "active": True, "fast_rate": True, "tx_hash": ["l3", "l4"]}
    ports = {port: {"link_watch": {"name": "ethtool"}} for port in PORTS}
    settings = {"device": "team0", "runner": runner, "ports": ports}
    command = ["teamd", "-d", "-p", str(folder / "teamd.pid"), "-c", json.dumps(settings)]
    for port in PORTS:
        where.set_link(where.host, port, False)
    with where.host.entered():
        started = subprocess.run(command, capture_output=True, text=True, check=False)  # returns when it is ready
    if started.returncode:
        pytest.skip(f"no team driver in this kernel: {started.stderr.strip()}")
    try:
        where.set_link(where.host, "team0", True)
        yield
    finally:
        os.kill(int((folder / "teamd.pid").read_text()), signal.SIGTERM)


def speakers(where: Rack, keys: tuple[int, int], told: Callable[[Event], None]) -> list[Speaker]:
    """The two ToRs, with carrier."""
    found = []
    for space, key, offset in zip(where.tors, keys, (300, 600), strict=True):
        config = LacpConfig(SHARED, key=key, aggregate_wait_ns=0)
        made = Speaker(SystemAt(space.name, space, config, [PortConfig("down0", offset + 1)], told))
        made.start()
        made.carrier("down0", True)
        found.append(made)
    return found


async def judged(keys: tuple[int, int], folder: Path, done: Callable[[list[Speaker]], bool]) -> list[PortState]:
    """What teamd says of itself to each ToR once ``done`` holds of them."""
    where, changed = rack.build(), asyncio.Event()
    tors = speakers(where, keys, lambda _event: changed.set())
    with teamd(where, folder):
        async with asyncio.timeout(PATIENCE_S):
            while not done(tors):
                changed.clear()
                with suppress(TimeoutError):  # what a partner says of itself may change without an event of ours
                    async with asyncio.timeout(_LOOK_S):
                        await changed.wait()
        states = [tor.status()[0].partner.state for tor in tors]
    for tor in tors:
        tor.stop()
    return states


async def test_teamd_takes_two_tors_with_one_system_id_for_one_partner(tmp_path: Path) -> None:
    states = await judged((7, 7), tmp_path, lambda tors: all(_carries(tor) for tor in tors))
    assert [BOTH_WAYS in state for state in states] == [True, True]


async def test_teamd_too_keeps_a_nic_off_a_tor_of_another_set_by_its_key(tmp_path: Path) -> None:
    def decided(tors: list[Speaker]) -> bool:
        return sorted((_carries(tor), _heard_and_refused(tor)) for tor in tors) == [(False, True), (True, False)]

    states = await judged((7, 8), tmp_path, decided)
    assert sorted(BOTH_WAYS in state for state in states) == [False, True]


def _carries(tor: Speaker) -> bool:
    return bool(tor.active_ports) and BOTH_WAYS in tor.status()[0].partner.state


def _heard_and_refused(tor: Speaker) -> bool:
    status = tor.status()[0]
    return status.rx is Rx.CURRENT and PortState.SYNCHRONIZATION not in status.partner.state
