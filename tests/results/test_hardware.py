"""Every report page says what real switches and NICs would do otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.results.page import hardware
from hpn.results.page.hardware import TITLE, on_real_hardware
from hpn.results.page.page import page
from hpn.results.run.manifest import Manifest
from hpn.results.run.reading import read
from tests.results.sample import MANIFEST
from tests.results.whole import whole_run

VIRTUAL = replace(MANIFEST, engine="uml-virtual-time", datapath="kernel")


def test_switches_are_told_to_be_no_asic_and_rates_to_be_scaled() -> None:
    found = on_real_hardware([MANIFEST], [1000])
    assert found[0].endswith("as fast as a kernel and a BGP daemon do, not as an ASIC.")
    assert any(line.startswith("Rates are 1:1,000 of the real ones") for line in found)
    assert 3 <= len(found) <= 6
    pfc = on_real_hardware([MANIFEST], [1000], pfc=True)
    assert not any("there is no PFC" in line for line in pfc)
    assert [line for line in pfc if line not in found] == [hardware._PFC]
    assert any(line.startswith("Path control, where it is on, is hpn's own protocol") for line in found)
    assert any(line.startswith("Rates are scaled down") for line in on_real_hardware([MANIFEST]))
    assert on_real_hardware([]) == ()


@pytest.mark.parametrize(
    ("manifests", "times", "lags"),
    [
        ([MANIFEST], ["In real time"], ["The LAG is nft, no bonding driver. It acts at once at a lost port"]),
        ([VIRTUAL], ["In virtual time"], ["The LAG is Linux bonding, as on real hosts. It acts within 10.0 ms"]),
        ([MANIFEST, VIRTUAL, MANIFEST], ["In virtual time", "In real time"], ["The LAG is nft", "The LAG is Linux"]),
        ([replace(MANIFEST, engine="mine", datapath="mine")], [], []),
    ],
    ids=["host", "virtual time", "both", "plug-ins"],
)
def test_engine_and_lag_decide_what_is_told(manifests: list[Manifest], times: list[str], lags: list[str]) -> None:
    found = on_real_hardware(manifests)
    for start in (*times, *lags):
        assert sum(line.startswith(start) for line in found) == 1
    assert sum(line.startswith(("In virtual", "In real")) for line in found) == len(times)
    assert sum(line.startswith("The LAG") for line in found) == len(lags)


def test_a_lag_acts_as_late_as_its_hosts_look() -> None:
    bonding = replace(VIRTUAL, host_profile="production")
    (told,) = (line for line in on_real_hardware([bonding]) if line.startswith("The LAG"))
    assert "It acts within 100 ms at a lost port, within 2200 ms at a repaired one" in told
    ours = replace(MANIFEST, host_profile="production")
    (told,) = (line for line in on_real_hardware([ours]) if line.startswith("The LAG"))
    assert "It acts within 100 ms at a lost port, within 2100 ms at a repaired one" in told


def test_the_page_of_a_run_has_the_section(tmp_path: Path) -> None:
    markup = page(read(whole_run(tmp_path / "run").path))
    assert f"<h2>{TITLE}</h2>" in markup


def test_a_wait_for_the_standard_s_retry_timer_is_told_with_what_adapters_do() -> None:
    """One wait of 4.29 s cost a job 37 iterations, and with adaptive timers less than one."""
    job: dict[str, str | int | float | bool] = {"retry_timer": "ib", "first_wait_ms": 4294.967296}
    (told,) = (line for line in on_real_hardware([replace(MANIFEST, job=job)]) if "retry" in line)
    assert told.startswith("A job's queue pairs wait by InfiniBand's timer: 4295 ms before the first retry.")
    adaptive = replace(MANIFEST, job={**job, "retry_timer": "adaptive"})
    assert not any("retry" in line for line in on_real_hardware([adaptive, MANIFEST]))
