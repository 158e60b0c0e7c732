"""What `hpn plan` and `hpn drill validate` say of a lab on this machine is what `hpn up` and `hpn drill run` do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.cli import command_line
from hpn.results.run.folder import RunFolder
from hpn.scenarios.drill import catalogue
from hpn.scenarios.run import guest_need, refusals, session
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import HpnError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.process import open_files, sandbox
from hpn.testbed.lab.service import preflight, supervisor


class _Started(Exception):
    """The lab, or the drill, got through its checks."""


@pytest.fixture(scope="module", autouse=True)
def _a_machine_without_labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HPN_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        patched.setattr(sandbox, "ask", lambda _question: "")
        yield


def _up(fabric: Fabric) -> list[str]:
    """What ``hpn up`` refuses it with; nothing where the lab would be started."""
    with pytest.MonkeyPatch.context() as patched:

        def started(_name: str) -> None:
            raise _Started

        patched.setattr(supervisor, "free_folder", started)
        try:
            supervisor.launch(supervisor.Request(fabric.spec.name, "", fabric), lambda _event: None)
        except MachineError as error:
            return str(error).splitlines()
        except _Started:
            return []
    raise AssertionError


def _run(order: Order) -> list[str]:
    with pytest.MonkeyPatch.context() as patched:

        def started(_order: Order, folder: RunFolder, *_other: object) -> RunFolder:
            raise _Started

        patched.setattr(session, "_run", started)
        try:
            session.run(order, lambda _news: None)
        except MachineError as error:
            return str(error).splitlines()
        except _Started:
            return []
    raise AssertionError


_SPECS = st.builds(
    FabricSpec,
    name=st.just("mine"),
    segments=st.integers(1, 3),
    hosts=st.integers(2, 24),
    rails=st.integers(1, 2),
    aggs=st.integers(1, 4),
)


@settings(max_examples=20, deadline=None)
@given(_SPECS, st.integers(20, 300), st.integers(40, 400), st.integers(300, 1200))
def test_plan_says_of_any_topology_what_up_does(spec: FabricSpec, entries: int, memory_mb: int, files: int) -> None:
    fabric = build(spec)
    with pytest.MonkeyPatch.context() as machine:
        machine.setattr(preflight, "neighbour_limit", lambda: entries)
        machine.setattr(preflight, "available_memory", lambda: memory_mb << 20)
        machine.setattr(open_files, "limit_below", lambda count: files if count > files else None)
        assert preflight.refusals(fabric, spec.name) == _up(fabric)


@settings(max_examples=10, deadline=None)
@given(_SPECS, st.integers(20, 300), st.integers(40, 400))
def test_validate_says_of_any_topology_what_a_run_does(
    tmp_path_factory: pytest.TempPathFactory, spec: FabricSpec, entries: int, memory_mb: int
) -> None:
    try:
        drill = catalogue.load("link-down", spec)
    except HpnError:
        return
    with pytest.MonkeyPatch.context() as machine:
        machine.setattr(preflight, "neighbour_limit", lambda: entries)
        machine.setattr(preflight, "available_memory", lambda: memory_mb << 20)
        found = refusals.of_drill(drill)
        ran = _run(Order(drill, tmp_path_factory.mktemp("runs") / "run", ()))
        assert ran == ([] if found is None else list(found.reasons))


def test_a_drill_that_is_refused_is_not_good_and_told_where_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "neighbour_limit", lambda: 16)
    monkeypatch.setattr(refusals, "check_guest", lambda _drill, _spec: None)
    said = CliRunner().invoke(command_line, ["drill", "validate", "link-down"])
    assert said.exit_code == 0, said.output
    assert said.output.startswith(
        "link-down: no mistake, but this machine refuses to run it\n  your labs would need 24"
    )
    assert "  it can run in virtual time: hpn drill run link-down --engine uml-virtual-time\n" in said.output
    assert "good" not in said.output


def test_a_drill_that_nothing_here_can_run_is_an_error_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "limit").write_text("100\n")
    monkeypatch.setattr(guest_need, "_MAP_LIMIT", tmp_path / "limit")
    monkeypatch.setattr(preflight, "neighbour_limit", lambda: 16)
    said = CliRunner().invoke(command_line, ["drill", "validate", "link-down"])
    assert isinstance(said.exception, MachineError)
    assert "nor would it run in virtual time: " in said.output


def test_plan_tells_a_fabric_that_up_would_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "neighbour_limit", lambda: 16)
    said = CliRunner().invoke(command_line, ["plan", "tiny"])
    assert said.exit_code == 0, said.output
    assert "hpn up refuses it on this machine:\n  your labs would need 24 neighbour entries" in said.output
    refused = json.loads(CliRunner().invoke(command_line, ["plan", "tiny", "--json"]).output)["refused"]
    assert len(refused) == 1


@pytest.mark.parametrize("name", ["a" * 32, "UPPER"])
def test_a_name_that_no_lab_can_have_is_told(name: str) -> None:
    assert "is no lab name" in "".join(preflight.refusals(build(FabricSpec()), name))


def test_a_sandbox_or_kernel_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_question: object) -> object:
        raise MachineError("no user namespaces here; run as root")

    monkeypatch.setattr(sandbox, "ask", refuses)
    assert preflight.refusals(build(FabricSpec())) == ["no user namespaces here; run as root"]
    monkeypatch.setattr(sandbox, "ask", lambda _question: "no Soft-RoCE in this kernel")
    assert preflight.refusals(build(FabricSpec())) == ["no Soft-RoCE in this kernel"]


def test_a_limit_of_open_files_is_asked_without_a_change() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert open_files.limit_below(16) is None
    assert open_files.limit_below(2**40) == before[1]
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
