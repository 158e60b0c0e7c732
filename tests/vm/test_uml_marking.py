"""What stands in a port's token bucket, in a guest in virtual time: the tests' own kernel may have no RED."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[2]
FILES = ("tests/kernel/test_red.py", "tests/lab/test_markers.py", "tests/lab/test_classes.py")


def test_red_marks_what_it_is_asked_to_in_a_queue_and_in_a_lab() -> None:
    engine = Uml(virtual_time=True)
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    command = (sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-rs", "-s", *FILES)
    lines: list[str] = []
    result = engine.run(GuestJob(command, ROOT, (), {"PYTHONHASHSEED": "0"}, 1024, 1, 300.0), lines.append)
    said = "\n".join(lines)
    assert result.exit_code == 0, said
    assert "skipped" not in said, said
    assert "marker red" in said
