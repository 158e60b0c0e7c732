"""What is said of a command in a guest that gave no answer: its own words, not those of the guest's kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpn.scenarios.run.remote_task import RemoteTask, answered, in_guest
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.console import Console
from hpn.testbed.vm.engines import EngineSpec
from hpn.testbed.vm.guest import GuestJob, GuestResult


class _Ended:
    """An engine whose command has printed ``said`` and ended with ``code``; then its kernel says farewell."""

    slowness = 1

    def __init__(self, code: int, *said: str) -> None:
        self._code, self._said = code, said

    def check(self) -> None:
        """It can."""

    def describe(self) -> str:
        """Nothing that is asked for."""
        return ""

    def run(self, _job: GuestJob, on_line: Callable[[str], None]) -> GuestResult:
        """As an engine does it."""
        console = Console(on_line)
        for line in self._said:
            console.command(line)
        console.kernel("reboot: Power down")
        return GuestResult(self._code, console.tail, 1.0, 2.0, "6.1.7", console.last_line)


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        (_Ended(137, "sending"), "uml: sending (the command was killed by signal 9 in the guest)"),
        (_Ended(5), "uml: it said nothing (the command ended with code 5 in the guest)"),
        (_Ended(3, "hpn: no BIRD; apt install bird2"), "uml: no BIRD; apt install bird2"),
    ],
)
def test_a_command_without_an_answer_is_told_by_its_own_words(engine: _Ended, text: str, tmp_path: Path) -> None:
    assert _told(EngineSpec(name="uml", start=lambda: engine), tmp_path) == text


def test_who_sent_too_many_packets_for_this_machine_s_limit_on_mappings_is_told_of_it(tmp_path: Path) -> None:
    """Seen with 9 million packets on ``medium``: 'killed by signal 11' was all."""
    died = _Ended(3, "hpn: the drill's supervisor (process 45) was killed by signal 11")
    told = _told(EngineSpec(name="uml", start=lambda: died, maps_pages=True), tmp_path)
    assert told.startswith(
        "uml: the drill's supervisor (process 45) was killed by signal 11; a guest's process with more"
    )
    assert "sysctl -w vm.max_map_count" in told
    assert "sysctl" not in _told(EngineSpec(name="qemu", start=lambda: died), tmp_path)


def _told(spec: EngineSpec, folder: Path) -> str:
    with pytest.raises(MachineError) as ended:
        answered(spec, in_guest(RemoteTask("run", spec.name), spec, folder, 10.0, lambda _line: None))
    return str(ended.value)
