"""The bench of virtual time: what is measured, between which moments; its figures are nobody's promise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run import client_site
from hpn.scenarios.selfcheck.bench import virtual
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.vm import kernel_cache, kernel_recipe
from hpn.testbed.vm.engines import ENGINES, EngineSpec
from hpn.testbed.vm.kernel_cache import Built

SPEC = ENGINES["uml-virtual-time"]
DRILL = load_drill(Path(virtual.__file__).parent / "virtual-time.yaml")
BURN = "import time\nwhile time.process_time() < 0.2: pass\n"
WAIT = "print(flush=True); input()"
TICKS = 0.02


def test_cpu_time_of_children_counts_while_they_run_and_after_they_have_ended() -> None:
    """And that of a grandchild: a guest's programs are children of its kernel."""
    before = virtual.descendants_cpu_s()
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN + WAIT!r}])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        living = virtual.descendants_cpu_s() - before
    ended = virtual.descendants_cpu_s() - before
    # The kernel counts in ticks of 10 ms, and a difference of sums of them is no exact decimal.
    assert 0.2 - TICKS <= living <= ended + TICKS
    assert ended < 5


def _told(monkeypatch: pytest.MonkeyPatch, lines: list[tuple[str, float, float]]) -> None:
    """A guest that tells these lines when so much CPU and wall time was used."""
    now = {"cpu": 0.0, "wall": 0.0}

    def run(_order: object, _spec: EngineSpec, listen: Callable[[str], None]) -> SimpleNamespace:
        for line, now["cpu"], now["wall"] in lines:
            listen(line)
        return SimpleNamespace(verdict=lambda: SimpleNamespace(outcome=SimpleNamespace(value="pass")))

    monkeypatch.setattr(virtual, "run_in_guest", run)
    monkeypatch.setattr(virtual, "descendants_cpu_s", lambda: now["cpu"])
    monkeypatch.setattr(virtual, "_children_cpu_s", lambda: 2 * now["cpu"])
    monkeypatch.setattr(virtual, "time", SimpleNamespace(monotonic=lambda: now["wall"]))


def test_a_virtual_second_is_held_against_both_clocks_once_it_has_warmed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    _told(
        monkeypatch,
        [
            ("x: converged", 5, 50),
            ("x:   0.2 of 6.5 s  goodput", 7, 70),
            ("x:   1.2 of 6.5 s  goodput", 8, 80),
            ("x:   3.2 of 6.5 s  goodput", 9, 81),
            ("x:   5.2 of 6.5 s  goodput", 12, 82),
        ],
    )
    found = virtual.measure(DRILL, SPEC)
    assert found == virtual.Second(1.0, 0.5, 20.0, "pass")
    assert "0.500 s wall" in virtual.cpu_figure("", found).note


def test_a_guest_that_told_no_times_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    _told(monkeypatch, [("x: converged", 5, 50), ("x:   1.2 of 6.5 s  goodput", 8, 80)])
    with pytest.raises(MachineError, match="told no times"):
        virtual.measure(DRILL, SPEC)


def test_every_row_is_measured_with_every_kernel_of_this_recipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "linux").write_bytes(b"")
    recipes = {"6.12.117": kernel_recipe.checksum(), "7.2.13": kernel_recipe.checksum(), "6.9.1": "an older one"}
    for release, recipe in recipes.items():
        built = Built(release, release, "", recipe, "", 0.0)
        kernel_cache.store(built, tmp_path / "linux", tmp_path / "linux")
    monkeypatch.setattr(client_site, "missing", lambda drill: "no torch" if "torch" in str(drill.client) else None)
    measured: list[tuple[Path, bool, int]] = []

    def uml(program: Path, *, virtual_time: bool) -> tuple[Path, bool]:
        return program, virtual_time

    def measure(drill: Drill, spec: EngineSpec) -> virtual.Second:
        assert spec.start is not None
        program, virtual_time = uml(*spec.start.args, **spec.start.keywords)  # type: ignore[attr-defined]  # a partial
        measured.append((program, virtual_time, len(build(drill.topology).hosts)))
        return virtual.Second(1.0, 1.0, 1.0, "pass")

    monkeypatch.setattr(virtual, "measure", measure)
    names = [figure.name for figure in virtual.table()]
    sizes = [4, 4, 16, 16, 64, 64, 4, 4, 4, 4]
    assert measured == [
        (kernel_cache.folder() / release / "linux", True, hosts)
        for release in ("6.12.117", "7.2.13")
        for hosts in sizes
    ]
    assert names[:2] == ["6.12.117: 4 hosts, 2,000 packets/s", "6.12.117: 4 hosts, 50,000 packets/s"]
    assert names[5] == "6.12.117: 64 hosts, 50,000 packets/s"
    assert len(set(names)) == len(names)
    assert not any("torch" in name for name in names)


def test_without_a_kernel_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path))
    with pytest.raises(MachineError, match="hpn vm build-kernel"):
        list(virtual.table())
