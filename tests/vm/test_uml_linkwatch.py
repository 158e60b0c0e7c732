"""250 links that go at once, in virtual time: who hears of it when, with the link watcher left alone and hurried."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]

_ROOT = Path(__file__).parents[2]


@pytest.fixture
def engine() -> Uml:
    found = Uml(virtual_time=True, stall_s=30.0)
    try:
        found.check()
    except MachineError as error:
        pytest.skip(str(error))
    return found


def _late_ms(engine: Uml, place: Path, ask: str) -> list[float]:
    lines: list[str] = []
    command = (sys.executable, "-B", "-m", "tests.kernel.linkwatch_in_guest", ask)
    result = engine.run(GuestJob(command, _ROOT, (place,), {}, 256, 1, 200.0), lines.append)
    assert result.exit_code == 0, "\n".join(lines)
    found: list[float] = json.loads(lines[-1])
    return found


def test_the_last_of_250_links_is_heard_of_seconds_late_unless_the_kernel_is_asked(engine: Uml, tmp_path: Path) -> None:
    """Why it is asked at all: should its first line fail one day, the kernel has become better."""
    assert max(_late_ms(engine, tmp_path, "0")) > 500
    assert max(_late_ms(engine, tmp_path, "1")) < 1
