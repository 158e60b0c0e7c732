"""After labs and drills, however they end, the machine is as it was: no process, interface, named namespace or file."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process import sandbox
from tests.product.hpn import Hpn, processes_of


def _machine() -> dict[str, object]:
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    named = Path("/run/netns")
    return {
        "veths": [line for line in links.splitlines() if "veth" in line or "bond" in line],
        "named namespaces": sorted(os.listdir(named)) if named.is_dir() else [],
    }


def test_labs_and_drills_leave_the_machine_as_it_was(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        sandbox.spawn(lambda: 0).wait()
    except MachineError as error:
        pytest.skip(str(error))
    place = tmp_path_factory.mktemp("all")  # a short name: below it lies a socket, whose path may have 107 bytes
    hpn, before = Hpn(place), _machine()
    hpn.run("up", "tiny", "--name", "ended")
    hpn.run("down", "ended")
    hpn.run("up", "tiny", "--name", "killed")
    victim = int(str(hpn.labs()[0]["first_pid"]))
    watch = os.pidfd_open(victim)
    os.kill(victim, signal.SIGKILL)
    hpn.run("down", "killed")
    hpn.run("drill", "run", "link-flap", "--out", "out", code=None)
    os.close(watch)
    assert hpn.labs() == []
    assert processes_of(place) == []
    assert _machine() == before
    assert os.listdir(place / "labs") == []
    assert not list((place / "out").rglob("*.bin")), "record files are for analysis only"
