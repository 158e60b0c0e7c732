"""The self-test in virtual time: its claims are kept on however busy a machine, and it repeats to the last digit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.results.judge.ground_truth import GroundTruth
from hpn.results.judge.verdict import Outcome
from hpn.scenarios.selfcheck.selftest import start
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.engines import named
from hpn.testbed.vm.uml import Uml

pytestmark = [pytest.mark.guest, pytest.mark.timeout(900)]

ENGINE = "uml-virtual-time"


def _run() -> GroundTruth:
    try:
        Uml(virtual_time=True).check()
    except MachineError as error:
        pytest.skip(str(error))
    return start.run(named(ENGINE), lambda _line: None)


def test_measured_is_true_to_one_packet_in_both_directions_and_every_run_says_the_same() -> None:
    found = _run()
    assert found.outcome is Outcome.PASS, "\n".join(found.reasons())
    assert max(one.width_ms for one in found.measured) < 0.05, "the truth is known better than anything claimed"
    assert found.noise_floor_ms < 0.1
    paused = [one for one in found.measured if one.pause_ms]
    assert {one.paused_where for one in paused} == {"inside", "across the start", "across the end", "outside"}
    assert {one.pause_ms for one in paused} == {1, 2, 5, 10, 15, 20}
    assert max(abs(one.plbm_ms - one.true_ms) for one in paused) > 5, "the pauses did stop the senders"
    longer = tuple(replace(one, true_ms=one.true_ms + 20) for one in found.measured)
    assert replace(found, measured=longer).outcome is Outcome.FAIL, "it would tell"
    assert _run() == found
