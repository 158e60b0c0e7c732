"""LACP settings beside Linux bonding as the partner, in a guest in virtual time: a packet socket and bonding judge."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process import programs
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[2]
FILES = ("tests/lag/test_bonding_settings.py", "tests/lab/test_lacp_settings.py", "tests/lab/test_miimon.py")
LABS = ("tests/lab/test_bonding.py", "tests/lab/test_lab.py")
_OF_LAGS = "not (boots or stay_dark or without_a_fabric or bfd or first_gap or of_one_segment)"
"""Of tests of a lab, those that a host's bonding driver has no part in are the host's alone."""


def _said(*arguments: str) -> str:
    """What pytest says in a guest whose kernel has the bonding driver: some pass, none fails, none is skipped."""
    engine = Uml(virtual_time=True)
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    command = (sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-rs", "-s", *arguments)
    lines: list[str] = []
    environment = {"PYTHONHASHSEED": "0"}
    result = engine.run(GuestJob(command, ROOT, (), environment, 1024, 1, 300.0), lines.append)
    said = "\n".join(lines)
    assert result.exit_code == 0, said
    assert "skipped" not in said, said
    return said


def test_hosts_have_what_their_own_network_files_say() -> None:
    said = _said("tests/lab/test_own_hosts.py")
    times = re.findall(r"took the port back after (\S+) s, (\S+) s", said)
    assert len(times) == 2, "of nft and of the driver"
    for late_s, soon_s in times:
        assert 2.0 <= float(late_s) - float(soon_s) <= 3.0, said


def test_ifup_sets_bonds_up_as_hpn_does() -> None:
    if programs.find("ifup") is None:
        pytest.skip("no ifup with ifenslave: apt install ifupdown ifenslave")
    _said("tests/lag/test_ifupdown.py")


def test_labs_of_bonding_hosts_come_up_break_and_come_back() -> None:
    _said("-k", _OF_LAGS, *LABS)


def test_bonding_and_our_tors_do_what_their_lacp_settings_say() -> None:
    said = _said(*FILES)
    (waits,) = re.findall(r"restored (\S+) s, aggregated (\S+) s", said)
    restored_s, aggregated_s = map(float, waits)
    assert 1.7 <= restored_s <= 2.7, "of three LACPDUs a second a fourth waits for the next"
    assert 1.2 <= aggregated_s <= 2.2
