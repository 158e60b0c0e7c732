"""What ends a guest is looked at after what gives it longer."""

from __future__ import annotations

import math
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import uml_watch
from hpn.testbed.vm.guest import GuestJob, Writable
from hpn.testbed.vm.uml_watch import Watch


class Starving:
    """Due at once, unless somebody looks first."""

    clock_s = 0.0

    def __init__(self, _limit_s: float) -> None:
        self.due = time.monotonic()

    def note(self, _group: int) -> None:
        self.due = math.inf

    def text(self, _group: int) -> str:
        return "was silent"


class Ends:
    """A process group that is gone after the first look."""

    number = 1

    def ended(self, _within_s: float) -> bool:
        return True

    def result(self) -> int:
        return 0


def test_a_guest_that_starves_has_longer_before_it_is_found_to_be_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uml_watch, "Silence", Starving)
    job = GuestJob(("true",), tmp_path, (), {}, 256, 1, math.inf)
    kernel = SimpleNamespace(release="6.12")
    watch = Watch(job, Writable(job), kernel, lambda _line: None, 1.0, tmp_path)  # type: ignore[arg-type]  # a stand-in
    with closing(watch), pytest.raises(MachineError, match=r"^the UML guest (?!was silent)"):
        watch.watch(Ends())  # type: ignore[arg-type]  # likewise
