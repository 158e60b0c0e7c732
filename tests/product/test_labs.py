"""Labs from the command line: up, seen, entered, broken, down; two side by side; nothing left by any death."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process import sandbox
from tests.product.hpn import ROOT, Hpn, end_what_is_left
from tests.results.pictures import read

NOBODY = 65534


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    try:
        sandbox.spawn(lambda: 0).wait()
    except MachineError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["as ourselves", "as nobody"])
def hpn(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hpn]:
    """The command, as ourselves and (when we are root) as a user without any privilege."""
    prefix: tuple[str, ...] = ()
    if request.param == "as nobody":
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            pytest.skip("only root can become nobody")
        prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs")
        if not _may_read_us(prefix):
            pytest.skip("nobody cannot read this checkout")
        state = Path(tempfile.mkdtemp(prefix="hpn-test-"))  # pytest's own folders are closed to other users
        os.chown(state, NOBODY, NOBODY)
    else:
        state = tmp_path
    made = Hpn(state, prefix)
    yield made
    end_what_is_left(made)
    if state is not tmp_path:
        shutil.rmtree(state)


def _may_read_us(prefix: tuple[str, ...]) -> bool:
    """By its whole path, as the command is started: an installed copy of us may lie elsewhere."""
    return _succeeds(prefix, str(ROOT / "cli.py"), "--version")


def _may_start_workers(prefix: tuple[str, ...]) -> bool:
    """setpriv itself may start a Python in a closed folder; that Python may not start another."""
    return _succeeds(prefix, "-c", "import subprocess, sys; subprocess.run([sys.executable, '--version'], check=True)")


def _succeeds(prefix: tuple[str, ...], *arguments: str) -> bool:
    command = [*prefix, sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, cwd="/", check=False).returncode == 0


NO_MORE: dict[str, list[str]] = {"still_down": [], "lossy": [], "lossless": []}


def test_a_lab_is_up_seen_entered_broken_mended_and_down(hpn: Hpn) -> None:
    assert "converged after" in hpn.run("up", "tiny")
    assert [lab["name"] for lab in hpn.labs()] == ["tiny"]
    lacp = hpn.json("inspect", "lacp")
    assert isinstance(lacp, list)
    assert {row["mux"] for row in lacp} == {"distributing"}
    partners = {row["partner_port"] for row in lacp if row["port"].startswith("p0.s0.h0:r0")}
    assert partners == {301, 601}, "one partner system, two port IDs"
    bgp = hpn.json("inspect", "bgp")
    assert isinstance(bgp, list)
    assert all(row["established"] for row in bgp)
    assert "1 received" in hpn.run("exec", "p0.s0.h0", "--", "ping", "-c", "1", "-W", "5", "10.0.1.1")
    hpn.run("exec", "p0.s0.h0", "--", "sh", "-c", "exit 7", code=7)
    hpn.run("exec", "p0.s0.h0", "--", "sh", "-c", "kill -PIPE $$; exit 1", code=128 + signal.SIGPIPE)
    seen = hpn.run("exec", "p0.s0.h0", "--", "ls", "/sys/class/net").split()
    assert {"lo", "bond0", "r0p0", "r0p1"} <= set(seen), "MPI and UCX look for interfaces there"
    assert "delivered" in hpn.run("trace", "p0.s0.h0.r0", "p0.s1.h0.r0", "--sport", "50000")
    assert "down: p0.s0.h0.r0.0" in hpn.run("break", "p0.s0.h0.r0.0")
    assert "nothing changed: it was down already" in hpn.run("break", "p0.s0.h0.r0.0")
    links = hpn.json("inspect", "links")
    assert isinstance(links, list)
    assert [row["link"] for row in links if not row["carrier"]] == ["p0.s0.h0.r0.0"]
    drawn = read(hpn.run("graph", "--flow", "p0.s0.h0.r0", "p0.s1.h0.r0", "50000", "--load", "100 ms"))
    assert [line.title.partition(",")[0] for line in drawn.strokes if "down" in line.classes] == ["p0.s0.h0.r0.0"]
    assert sum("path" in line.classes for line in drawn.strokes) == 4
    assert all(", load " in line.title for line in drawn.strokes)
    assert hpn.json("mend", "p0.s0.h0.r0.0") == {"down": [], "up": ["p0.s0.h0.r0.0"], **NO_MORE}
    hpn.run("break", "p0.s0.h1")
    hpn.run("break", "p0.a0.0")
    assert [row["part"] for row in _rows(hpn, "broken")] == ["p0.a0.0", "p0.s0.h1"]
    assert "say --all; hpn inspect broken" in hpn.run("mend", code=2)
    assert "p0.a0.0" in hpn.run("mend", "--all")
    assert _rows(hpn, "broken") == []
    assert "lab tiny is down" in hpn.run("down")
    assert hpn.labs() == []
    assert "is not up" in hpn.run("down", "tiny"), "ending what is not up is no error"


def _rows(hpn: Hpn, what: str) -> list[dict[str, object]]:
    found = hpn.json("inspect", what)
    assert isinstance(found, list)
    return found


def test_probes_are_sent_in_ones_own_lab(hpn: Hpn) -> None:
    hpn.run("up", "tiny")
    if _may_start_workers(hpn.prefix):
        assert "probes cross lab tiny" in hpn.run("locate", "--for", "300 ms")
    else:  # it enters the lab; then workers need this Python again, which lies in a folder closed to nobody
        assert f"Permission denied ({sys.executable})" in hpn.run("locate", "--for", "300 ms", code=3)


def test_links_are_captured_until_the_time_is_over_or_ctrl_c(hpn: Hpn) -> None:
    hpn.run("up", "tiny")
    rows = hpn.json("capture", "p0.s0.h0.r0", "p0.s0.h0.r0.1", "--for", "1.2 s", "--out", "lag.pcapng")
    assert isinstance(rows, list)
    assert [(row["link"], row["packets"] > 0, row["lost"]) for row in rows] == [
        ("p0.s0.h0.r0.0", True, 0),
        ("p0.s0.h0.r0.1", True, 0),
    ]
    if tshark := shutil.which("tshark"):
        command = [tshark, "-r", str(hpn.state / "lag.pcapng"), "-T", "fields", "-e", "frame.interface_name"]
        seen = subprocess.run([*command, "-Y", "lacp"], capture_output=True, text=True, check=True).stdout.split()
        assert set(seen) == {row["link"] for row in rows}
        malformed = [*command, "-Y", "_ws.malformed || _ws.expert.severity >= error"]
        assert subprocess.run(malformed, capture_output=True, text=True, check=True).stdout == ""
    until_told = hpn.start("capture", "--out", "all.pcapng", "--json")
    everything = hpn.state / "all.pcapng"
    while not everything.exists() or everything.stat().st_size < 1000:
        select.select([], [], [], 0.05)
    until_told.send_signal(signal.SIGINT)
    out, err = until_told.communicate(timeout=30)
    assert (until_told.returncode, len(json.loads(out)), err) == (0, 32, "")
    said = hpn.run("capture", "p0.s9.h0", "--for", "1 s", "--out", "x", code=2)
    assert "no node, NIC or link 'p0.s9.h0'" in said
    assert "'1' is not a duration" in hpn.run("capture", "--for", "1", "--out", "x", code=2)
    assert "cannot write" in hpn.run("capture", "--for", "1 s", "--out", "no/folder", code=2)


def test_minis_cli_speaks_to_the_labs_nodes(hpn: Hpn) -> None:
    hpn.run("up", "tiny")
    script = hpn.state / "script.mn"
    script.write_text("pingall\np0.s0.t0.0 echo from the ToR\np0.s0.t0.0 ls /sys/class/net\nexit\n")
    said = hpn.run("shell", "--script", str(script))
    assert "0% dropped (12/12 received)" in said
    assert "from the ToR" in said
    assert "h0r0" in said.partition("from the ToR")[2], "its own interfaces in its /sys"


def test_minis_cli_shows_links_and_measures_rates(hpn: Hpn) -> None:
    hpn.run("up", "tiny")
    hpn.run("break", "p0.s0.h1.r0.0")
    script = hpn.state / "script.mn"
    script.write_text("links\nnet\niperf p0.s0.h0 p0.s1.h1\nexit\n")
    said = hpn.run("shell", "--script", str(script))
    assert "p0.s0.h0:r0p0<->p0.s0.t0.0:h0r0 (OK OK)" in said
    assert "p0.s0.h1:r0p0<->p0.s0.t0.0:h1r0 (DOWN DOWN)" in said
    (tor,) = (line for line in said.splitlines() if line.startswith("p0.s0.t0.0 "))
    assert "h0r0:p0.s0.h0:r0p0" in tor
    if shutil.which("iperf3"):
        (rates,) = re.findall(r"\*\*\* Results: \['([\d.]+) Mbits/sec', '[\d.]+ Mbits/sec'\]", said)
        assert 10 < float(rates) < 201, "a port of 200 Mbit/s; a busy machine gives less"


def test_two_labs_at_once_do_not_meet(hpn: Hpn) -> None:
    hpn.run("up", "tiny", "--name", "one")
    hpn.run("up", "tiny", "--name", "two")
    assert {lab["name"] for lab in hpn.labs()} == {"one", "two"}
    assert "which lab?" in hpn.run("exec", "p0.s0.h0", "--", "true", code=2)
    hpn.run("break", "p0.s0.h0.r0.0", "--lab", "one")
    other = hpn.json("inspect", "links", "--lab", "two")
    assert isinstance(other, list)
    assert all(row["carrier"] for row in other)
    assert "already up" in hpn.run("up", "tiny", "--name", "two", code=2)
    hpn.run("down", "one")
    assert [lab["name"] for lab in hpn.labs()] == ["two"]


def test_a_killed_supervisor_leaves_no_process_and_the_name_is_free(hpn: Hpn) -> None:
    hpn.run("up", "tiny")
    pid = int(str(hpn.labs()[0]["first_pid"]))
    with _pid_namespace(pid) as inside:
        assert len(_processes_in(inside)) > 10, "BIRDs and the supervisor"
        watch = _warden_of(pid)
        os.kill(pid, signal.SIGKILL)
        _until_ended(watch)
        assert _processes_in(inside) == []
    hpn.run("up", "tiny")
    assert len(hpn.labs()) == 1


def test_a_lab_that_has_lost_its_folder_is_seen_and_ended(hpn: Hpn) -> None:
    hpn.run("up", "tiny")
    pid = int(str(hpn.labs()[0]["first_pid"]))
    with _pid_namespace(pid) as inside:
        watch = _warden_of(pid)
        shutil.rmtree(hpn.state / "labs" / "tiny")
        assert [(lab["name"], lab["state"], lab["first_pid"]) for lab in hpn.labs()] == [("tiny", "lost", pid)]
        assert "lab tiny is down" in hpn.run("down", "tiny")
        _until_ended(watch)
        assert _processes_in(inside) == []


@contextmanager
def _pid_namespace(pid: int) -> Iterator[int]:
    """The number of a process's PID namespace, which no lab of another test gets in the body."""
    held = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY)
    try:
        yield os.fstat(held).st_ino
    finally:
        os.close(held)


def _warden_of(first_pid: int) -> int:
    """A pidfd of the lab's warden, which ends once it has reaped the first process: a zombie until then."""
    return os.pidfd_open(int(Path(f"/proc/{first_pid}/stat").read_text().rpartition(")")[2].split()[1]))


def _processes_in(pid_namespace: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}/ns/pid").st_ino == pid_namespace:
                found.append(int(name))
        except OSError:
            continue
    return found


def _until_ended(pidfd: int) -> None:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    assert poller.poll(30_000), "the process does not end"
    os.close(pidfd)
