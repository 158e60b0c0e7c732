"""``hpn locate`` beside a lab: a loss by hand is named within seconds, in watch as well, and nothing is left behind."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.product.hpn import DEADLINE_S, Hpn, lab_up, until

pytestmark = pytest.mark.alone
"""Probes that a busy machine holds up look lost."""
SMALL = "preset: tiny\nname: small\n"
UPLINK = "p0.s0.t0.0-p0.a0.1"
HOST, HOSTS, PORTS = "p0.s0.h0", 4, {"r0p0", "r0p1", "r1p0", "r1p1"}


def _refused(hpn: Hpn, *arguments: str) -> str:
    return hpn.run(*arguments, code=2)


@pytest.fixture
def hpn(tmp_path: Path) -> Iterator[Hpn]:
    with lab_up(tmp_path, SMALL) as up:
        yield up


def test_a_lossy_link_is_named_and_acquitted_after_its_repair(hpn: Hpn) -> None:
    before = hpn.run("inspect", "links", "--json")
    assert f"from now on {UPLINK} loses 20 % of its packets upwards" in hpn.run(
        "break", UPLINK, "--loss", "20 %", "--direction", "up"
    )
    locating = hpn.start("locate", "--rate", "0.5 %", "--json")
    assert locating.stdout is not None
    probes = json.loads(locating.stdout.readline())["probes"]
    assert probes["load"] < 0.0055
    assert probes["unseen"] == []
    told = json.loads(locating.stdout.readline())["answer"]
    while not told["accused"]:  # while the machine is starved, and after it
        told = json.loads(locating.stdout.readline())["answer"]
    assert told["accused"][0]["parts"] == [f"{UPLINK} upwards"]
    assert 0 < told["at_ns"] < 30e9
    assert "another hpn locate runs" in _refused(hpn, "locate", "--for", "1 s")
    watched = hpn.run("watch", "--for", "300 ms")
    assert "hpn locate runs" in watched
    assert f"{UPLINK} upwards loses" in watched
    assert f"no longer: {UPLINK} loses 20 %" in hpn.run("mend", UPLINK)
    while told["accused"]:
        told = json.loads(locating.stdout.readline())["answer"]
    locating.send_signal(signal.SIGINT)
    assert locating.wait(DEADLINE_S) == 0
    assert "hpn locate" not in hpn.run("watch", "--for", "300 ms")
    assert hpn.run("inspect", "links", "--json") == before
    assert "[]" in hpn.run("inspect", "broken", "--json")


def test_a_killed_locate_leaves_nothing_and_the_end_of_the_lab_ends_one(hpn: Hpn) -> None:
    killed = hpn.start("locate", "--json")
    assert killed.stdout is not None
    killed.stdout.readline()
    children = Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split()
    assert children
    killed.kill()
    killed.wait(DEADLINE_S)
    end = time.monotonic() + DEADLINE_S
    while any(_lives(int(child)) for child in children):
        assert time.monotonic() < end
        time.sleep(0.05)
    locating = hpn.start("locate")
    assert locating.stdout is not None
    assert "probes cross lab small" in locating.stdout.readline()
    hpn.run("down")
    out, _ = locating.communicate(timeout=DEADLINE_S)
    assert out.splitlines()[-1] == "lab small is down"
    assert locating.returncode == 0


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _await_probes(hpn: Hpn, rate_pps: float, seconds: float) -> None:
    """Wait until hosts have sent so many seconds' packets of probes."""
    wanted = _sent(hpn) + rate_pps * seconds
    until(lambda: _sent(hpn) >= wanted, f"{seconds} s of probes")


def _sent(hpn: Hpn) -> int:
    """Packets that a host's ports have sent so far."""
    lines = hpn.run("exec", HOST, "--", "cat", "/proc/net/dev").splitlines()
    return sum(int(line.split()[10]) for line in lines if line.split(":")[0].strip() in PORTS)


def test_a_carrier_lost_by_hand_accuses_nobody(hpn: Hpn) -> None:
    locating = hpn.start("locate", "--rate", "0.5 %", "--json")
    assert locating.stdout is not None
    rate_pps = json.loads(locating.stdout.readline())["probes"]["packets_per_s"] / HOSTS
    _await_probes(hpn, rate_pps, 1)
    hpn.run("break", UPLINK)
    _await_probes(hpn, rate_pps, 2)
    hpn.run("mend", UPLINK)
    _await_probes(hpn, rate_pps, 2)
    locating.send_signal(signal.SIGINT)
    out, _ = locating.communicate(timeout=DEADLINE_S)
    assert locating.returncode == 0
    assert not any(json.loads(line)["answer"]["accused"] for line in out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rate", "0 %"), "--rate of 0 sends no probe"),
        (("--method", "guess"), "'guess' is not one of"),
        (("--rate", "900 %"), "lower --rate"),
        (("--lab", "nobody"), "nobody"),
    ],
)
def test_what_cannot_locate_is_refused_with_the_reason(hpn: Hpn, arguments: tuple[str, ...], said: str) -> None:
    assert said in _refused(hpn, "locate", "--for", "1 s", *arguments)


def test_a_run_takes_no_options_of_a_lab_and_a_direction_needs_a_loss(tmp_path: Path) -> None:
    hpn = Hpn(tmp_path)
    (tmp_path / "run").mkdir()
    assert "--rate is for a lab that is up" in _refused(hpn, "locate", "run", "--rate", "1 %")
    assert "--direction is that of a --loss" in _refused(hpn, "break", UPLINK, "--direction", "up")
