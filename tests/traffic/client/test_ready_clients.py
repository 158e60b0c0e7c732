"""Clients that are ready to name, torch, mpi and iperf3: what is run for them, what is refused, how iperf3 is read."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.clients import mpi
from hpn.traffic.client.clients.iperf3 import Iperf3
from hpn.traffic.client.clients.mpi import Mpi
from hpn.traffic.client.clients.torch import Torch
from hpn.traffic.client.lines import ClientStep, Line, Output, parse
from hpn.traffic.client.programs import rank
from hpn.traffic.client.programs.iperf3 import Intervals
from hpn.traffic.client.ranks import ClientRank, ranks_of
from tests.lab.running import tiny

SITE = Site(Path("/nowhere"), sys.executable)
GOLDEN = Path(__file__).parent / "golden"
MS = 1_000_000
BEGIN_NS = 5_000 * MS


def client_of(kind: type[Client], **keys: object) -> Client:
    return kind.model_validate({"run": kind.KEY, **keys})


def ranks(count: int = 4) -> tuple[ClientRank, ...]:
    return ranks_of(build(tiny()), count)


def absent(_name: str, **_where: str) -> None:
    """In the place of ``find`` and ``find_spec``."""


def steps_of(name: str, streams: int = 1) -> list[ClientStep]:
    """The steps in what a server of iperf3 3.12 printed, a line every millisecond."""
    reader = Intervals(streams, 0.1, BEGIN_NS)
    lines = (GOLDEN / f"iperf3-{name}.txt").read_text().splitlines()
    said = [parse(Line(told)) for at, line in enumerate(lines, 1) for told in reader.read(line, BEGIN_NS + at * MS)]
    return [each for each in said if isinstance(each, ClientStep)]


def test_gloo_is_told_the_interface_of_its_rank() -> None:
    plan = client_of(Torch, work="training", size="1 MB", pause="50 ms").plan(ranks(), SITE)
    assert [process.host for process in plan.processes] == [each.host for each in ranks()]
    assert {process.env["GLOO_SOCKET_IFNAME"] for process in plan.processes} == {"bond0"}
    assert plan.reporting == (0, 1, 2, 3)
    argv = plan.processes[0].argv
    assert argv[argv.index("--bytes") + 1] == "1000000"
    assert argv[argv.index("--pause-ns") + 1] == "50000000"
    assert "hpn.traffic.client.programs.torch_ddp" in argv


def test_an_incast_of_gloo_is_a_program_of_its_own() -> None:
    (argv,) = {
        process.argv[3:] for process in client_of(Torch, work="incast", size="1 MB").plan(ranks(), SITE).processes
    }
    assert argv[:3] == ("hpn.traffic.client.programs.torch_incast", "--bytes", "1000000")


def test_a_guest_is_asked_for_what_torch_and_its_buffers_take() -> None:
    small, large = (client_of(Torch, size=size).plan(ranks(), SITE).processes[0] for size in ("4 B", "100 MB"))
    assert (small.memory_mb, large.memory_mb) == (256, 1056)


def test_mpiexec_starts_a_rank_on_each_host_by_its_own_interface() -> None:
    (process,) = client_of(Mpi, work="latency", size="8 B", rounds=100).plan(ranks(), SITE).processes
    argv = process.argv
    assert (process.ranks, process.host) == ((0, 1, 2, 3), "p0.s0.h0")
    assert argv[argv.index("-hosts") + 1] == "p0.s0.h0,p0.s0.h1,p0.s1.h0,p0.s1.h1"
    assert argv.count("FI_TCP_IFACE") == 4
    assert argv.count(":") == 3
    enter = Path(argv[argv.index("-launcher-exec") + 1])
    assert enter.is_file()
    assert enter.stat().st_mode & 0o111 == 0o111, "mpiexec runs it as it is"


def test_every_rank_of_iperf3_sends_to_the_next() -> None:
    plan = client_of(Iperf3, protocol="udp", rate="50M", streams=2, interval="200 ms").plan(ranks(3), SITE)
    assert [process.argv[5:7] for process in plan.processes] == [
        ("10.0.0.1", "10.0.0.2"),
        ("10.0.0.2", "10.0.1.1"),
        ("10.0.1.1", "10.0.0.1"),
    ]
    assert plan.processes[0].argv[7:] == ("5201", "2", "0.2", "-u", "-b", "50000000", "-P", "2")


@pytest.mark.parametrize(
    ("kind", "keys", "count", "what"),
    [
        (Torch, {}, 1, "2 to 256 ranks, not 1"),
        (Mpi, {}, 1, "2 to 256 ranks, not 1"),
        (Mpi, {"work": "bandwidth"}, 3, "an even number of ranks, not 3"),
        (Iperf3, {}, 1, "2 ranks or more"),
    ],
)
def test_ranks_that_do_not_fit_are_refused(kind: type[Client], keys: dict[str, str], count: int, what: str) -> None:
    with pytest.raises(InputError, match=what):
        client_of(kind, **keys).plan(ranks(count), SITE)


def test_what_is_not_installed_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", absent)
    monkeypatch.setattr(mpi, "find", absent)
    monkeypatch.setattr("hpn.traffic.client.clients.iperf3.find", absent)
    site = Site(Path("/nowhere"), "/nowhere/python")
    told = {kind: client_of(kind).missing(site) for kind in (Torch, Mpi, Iperf3)}
    assert "pip install torch --index-url https://download.pytorch.org/whl/cpu" in str(told[Torch])
    assert "mpi4py and mpich not installed beside hpn; pip install mpi4py mpich" in str(told[Mpi])
    assert "apt install iperf3" in str(told[Iperf3])


@pytest.mark.parametrize(("name", "streams", "count"), [("tcp", 1, 11), ("streams", 2, 10), ("udp", 1, 11)])
def test_intervals_are_steps_and_the_whole_time_is_none(name: str, streams: int, count: int) -> None:
    steps = steps_of(name, streams)
    assert [step.number for step in steps] == list(range(count))
    assert {step.begin_ns for step in steps[:-1]} == {BEGIN_NS}, "none can have begun before the run"


def test_an_interval_without_a_byte_is_no_step_and_lost_packets_are_told() -> None:
    reader = Intervals(1, 0.1, BEGIN_NS)
    head = "[  5]   {0:.2f}-{1:.2f}   sec  "
    nothing = head.format(0.2, 0.3) + "0.00 Bytes  0.00 bits/sec  0.005 ms  0/0 (0%)  "
    after = head.format(0.3, 0.4) + "1.40 KBytes  115 Kbits/sec  0.005 ms  41/42 (98%)  "
    assert list(reader.read(nothing, BEGIN_NS + 300 * MS)) == []
    begin_ns, end_ns = BEGIN_NS + 300 * MS, BEGIN_NS + 400 * MS
    assert list(reader.read(after, end_ns)) == [f"hpn step 3 begin={begin_ns} end={end_ns}", "lost 41 of 42 packets"]


def test_uneven_intervals_of_a_busy_machine_have_numbers_of_their_own() -> None:
    reader = Intervals(1, 0.1, BEGIN_NS)
    lines = [f"[  5]   {times}   sec   256 KBytes  18.8 Mbits/sec" for times in ("0.91-1.09", "1.09-1.10", "1.10-1.20")]
    said = [parse(Line(told)) for line in lines for told in reader.read(line, BEGIN_NS + 1500 * MS)]
    assert [each.number for each in said if isinstance(each, ClientStep)] == [9, 11, 12]


@pytest.mark.parametrize("line", ["", "[  5]", "[  5] 0.00-0.10 sec", "iperf3: error - the server is busy", "[SUM] x"])
def test_all_other_lines_are_passed_on(line: str) -> None:
    assert list(Intervals(1, 0.1, BEGIN_NS).read(line, BEGIN_NS)) == [line]
    assert isinstance(parse(Line(line)), Output)


def test_a_rank_reads_its_begin() -> None:
    assert rank.read_begin("begin 17 until 42\n") == rank.Span(17, 42)
    for line in ("", "begin 1", "begin x until 2", "start 1 until 2"):
        with pytest.raises(ValueError):
            rank.read_begin(line)


def test_a_program_that_gives_up_says_why_in_one_line_and_dies() -> None:
    code = "from hpn.traffic.client.programs import rank; rank.give_up(RuntimeError('first\\nsecond'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "hpn error RuntimeError: first\n")
