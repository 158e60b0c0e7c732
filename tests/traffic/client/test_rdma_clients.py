"""Clients that speak verbs: who talks to whom, what is missing, how tools are read, what their runner does."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.traffic.client import rdma
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.clients.perftest import Perftest
from hpn.traffic.client.clients.rping import Rping
from hpn.traffic.client.clients.rxe_pingpong import RxePingpong
from hpn.traffic.client.clients.verbs import Verbs
from hpn.traffic.client.lines import ClientStep, GaveUp, Line, Output, Ready, Said, parse
from hpn.traffic.client.plan import ClientProcess
from hpn.traffic.client.programs import foreign, libibverbs_abi, verbs
from hpn.traffic.client.programs.libibverbs import Done
from hpn.traffic.client.programs.ring_sum import RingSum
from hpn.traffic.client.ranks import ClientRank, ranks_of
from tests.lab.running import tiny

SITE = Site(Path("/nowhere"), sys.executable)
ROOT = Path(rdma.__file__).resolve().parents[2]
MS = 1_000_000


def client_of(kind: type[Client], **keys: object) -> Client:
    return kind.model_validate({"run": kind.KEY, **keys})


def option(process: ClientProcess, name: str) -> str:
    return next(word for word in process.argv if word.startswith(f"--{name}=")).partition("=")[2]


def test_every_rank_writes_to_the_next_of_its_rail_by_its_own_device() -> None:
    fabric = build(tiny())
    ranks = ranks_of(fabric, None, "nic")
    processes = client_of(Verbs, size="1 MiB").plan(ranks, SITE).processes
    rails = {rank.rank: fabric.nic(rank.nic).rail for rank in ranks}
    assert [process.ranks for process in processes] == [(rank.rank,) for rank in ranks]
    after = {rank.rank: int(option(processes[rank.rank], "after")) for rank in ranks}
    assert {rails[here] == rails[there] for here, there in after.items()} == {True}
    assert sorted(after.values()) == sorted(after)
    assert all(int(option(processes[after[here]], "before")) == here for here in after)
    assert {option(process, "length") for process in processes} == {"4"}
    assert sorted(option(process, "at") for process in processes) == sorted("01230123")
    assert all(
        (int(option(processes[there], "at")) - int(option(processes[here], "at"))) % 4 == 1
        for here, there in after.items()
    )
    devices = [option(process, "device") for process in processes]
    assert devices == [fabric.nic(rank.nic).rdma for rank in ranks]


def test_an_incast_has_the_first_rank_of_each_rail_as_its_receiver() -> None:
    ranks = ranks_of(build(tiny()), None, "nic")
    processes = client_of(Verbs, work="incast").plan(ranks, SITE).processes
    assert {option(process, "work") for process in processes} == {"incast"}
    assert {option(process, "ranks") for process in processes} == {"0,2,4,6", "1,3,5,7"}
    assert all(str(process.ranks[0]) in option(process, "ranks").split(",") for process in processes)


def test_a_rank_without_another_on_its_rail_is_refused() -> None:
    with pytest.raises(InputError, match="rank 0 is alone on bond0"):
        client_of(Verbs).plan(ranks_of(build(tiny()), 1), SITE)


@pytest.mark.parametrize("kind", [RxePingpong, Rping, Perftest])
def test_a_tool_has_a_server_and_a_client_that_names_its_servers_address(kind: type[Client]) -> None:
    ranks = ranks_of(build(tiny()), None)
    processes = client_of(kind).plan(ranks, SITE).processes
    assert [process.argv[6] for process in processes] == ["server", "client"] * 2
    for at in (0, 2):
        assert ranks[at].ip in processes[at + 1].argv
        assert ranks[at + 1].ip not in processes[at].argv
    with pytest.raises(InputError, match="3 ranks on bond0 do not make pairs"):
        client_of(kind).plan(ranks[:3], SITE)


def test_what_the_machine_lacks_is_said_in_one_line_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdma, "find", lambda program: None)
    said = client_of(Rping).missing(SITE)
    assert said == "client rping: there is no rping: apt install rdmacm-utils"
    monkeypatch.setattr(rdma, "find", lambda program: program)
    monkeypatch.setattr(rdma, "LIBRARY", "libnothing.so.1")
    assert "there is no libibverbs: apt install" in str(client_of(RxePingpong).missing(SITE))
    monkeypatch.setattr(rdma, "LIBRARY", "libc.so.6")
    monkeypatch.setattr(rdma, "_DRIVERS", Path("/nowhere"))
    assert "no driver for Soft-RoCE: apt install ibverbs-providers" in str(client_of(Verbs).missing(SITE))


def test_the_runs_of_pingpong_are_rounds_timed_by_its_own_clock() -> None:
    tool = foreign.Pingpong()
    assert tool.heard("  local address:  LID 0x0000, QPN 0x000013, PSN 0x95793c, GID ::ffff:10.1.1.2", 5) is None
    assert tool.heard("13107200 bytes in 0.43 seconds = 242.55 Mbit/sec", 10**9) is None
    assert tool.heard("100 iters in 0.43 seconds = 4323.10 usec/iter", 10**9) == foreign.Round(
        6553600, 10**9 - 432_310_000
    )
    assert tool.is_told_away("Couldn't connect to 10.0.0.1:18515")


def test_each_ping_of_rping_is_a_round_of_its_size() -> None:
    data = "rdma-ping-4: EFGH"
    assert foreign.Rping().heard(f"ping data: {data}", 7) == foreign.Round(len(data) + 1)
    assert foreign.Rping().heard(f"server ping data: {data}", 7) == foreign.Round(len(data) + 1)
    assert foreign.Rping().heard("cma event RDMA_CM_EVENT_REJECTED, error 8", 7) is None


@pytest.mark.parametrize(
    "row",
    [
        " 65536      100              0.00               0.00   \t\t   0.000000",
        " 65536   100          inf            inf          inf      \t       inf         \t-nan   \t\tinf",
    ],
)
def test_a_run_of_perftest_is_a_round_from_its_meeting_to_its_row(row: str) -> None:
    tool = foreign.Perftest()
    assert tool.heard(" local address: LID 0000 QPN 0x0014 PSN 0x420bf5", 3) is None
    assert tool.heard(" remote address: LID 0000 QPN 0x0012 PSN 0xe94d01", 5) is None
    assert tool.heard(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]", 6) is None
    assert tool.heard(row, 9) == foreign.Round(6553600, 5)


def run_tool(role: str, script: str, ms: int, tool: str = "pingpong") -> list[Said]:
    """What the runner of foreign tools says of a shell script that plays ibv_rc_pingpong, or another."""
    command = [sys.executable, "-P", "-m", "hpn.traffic.client.programs.foreign", tool, role, "sh", "-c", script]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PYTHONPATH": str(ROOT)}, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdin is not None
        said = [parse(Line(running.stdout.readline().rstrip("\n")))]
        now = time.monotonic_ns()
        running.stdin.write(f"begin {now} until {now + ms * MS}\n")
        running.stdin.flush()
        said += [parse(Line(line.rstrip("\n"))) for line in running.stdout]
        assert running.wait() == (1 if isinstance(said[-1], GaveUp) else 0)
    return said


def test_a_tool_that_ends_is_started_again_and_each_run_is_a_step(tmp_path: Path) -> None:
    done = f"""
        n=$(cat {tmp_path}/n 2>/dev/null || echo 0); echo $((n + 1)) > {tmp_path}/n
        [ $n -lt 3 ] || exec sleep 60
        echo about to; echo '2000 bytes in 0.00 seconds = 9 Mbit/sec'; echo '1 iters in 0.00 seconds = 12.50 usec/iter'
    """
    said = run_tool("server", done, 3000)
    assert said[0] == Ready()
    steps = [each for each in said if isinstance(each, ClientStep)]
    assert [step.number for step in steps] == [0, 1, 2]
    assert {(step.kind, step.size_bytes, (step.end_ns or 0) - (step.begin_ns or 0)) for step in steps} == {
        ("ping-pong", 1000, 12_500)
    }
    assert said.count(Output("about to")) == 3


def test_who_asks_tries_again_while_nobody_listens_and_gives_up_for_any_other_reason(tmp_path: Path) -> None:
    script = f"[ -e {tmp_path}/tried ] && {{ echo it broke; exit 3; }}; touch {tmp_path}/tried; {{}}"
    away = 'echo "Couldn\'t connect to 10.0.0.1:18515"; exit 1'
    said = run_tool("client", script.replace("{}", away), 5000)
    assert said[-1] == GaveUp("sh ended with code 3: it broke")
    (tmp_path / "tried").unlink()
    said = run_tool("server", script.replace("{}", away), 5000)
    assert said[-1] == GaveUp("sh ended with code 1:"), "a server has nobody to wait for"


def test_a_tool_that_goes_on_has_its_first_round_before_the_run_and_is_ended_with_it(tmp_path: Path) -> None:
    script = f"echo 1 >> {tmp_path}/starts; n=10; echo ping data: the first; "
    script += "while :; do sleep 0.05; n=$((n+1)); echo ping data: $n; done"
    said = run_tool("client", script, 600, "rping")
    assert said[0] == Ready()
    steps = [each for each in said if isinstance(each, ClientStep)]
    assert [step.number for step in steps] == list(range(len(steps)))
    assert 2 <= len(steps) <= 12
    assert {step.size_bytes for step in steps} == {len("11") + 1}, "not the first"
    assert (tmp_path / "starts").read_text() == "1\n"


def summed(length: int, size: int, numbers: range, flip: int | None = None) -> list[RingSum]:
    """A ring all-reduce without a network, step after step; ``flip``: a bit of what rank 0 sends in that round."""
    ring = [RingSum(at, length, size) for at in range(length)]
    for number in numbers:
        for each in ring:
            each.begin(number)
        for done in range(ring[0].rounds):
            sent = [bytearray(each.sent(done)) for each in ring]
            if done == flip:
                sent[0][5] ^= 1
            for each, came in zip(ring, (sent[-1], *sent[:-1]), strict=True):
                each.took(done, bytes(came))
    return ring


@pytest.mark.parametrize("length", [2, 3, 4, 7])
def test_every_rank_of_a_ring_all_reduce_has_the_sum_of_all(length: int) -> None:
    ring = summed(length, 1000, range(3))
    assert {each.size for each in ring} == {1000 // length // 8 * 8 * length}
    assert [each.wrong() for each in ring] == [0] * length
    ring[1].begin(4)
    assert ring[1].wrong() == length  # what one rank gives is no sum


@pytest.mark.parametrize(("flip", "wrong"), [(0, [1, 1, 1, 1]), (3, [0, 1, 1, 1])])
def test_a_bit_that_changed_on_the_way_is_seen_by_all_that_have_it(flip: int, wrong: list[int]) -> None:
    assert [each.wrong() for each in summed(4, 1000, range(1), flip)] == wrong


class Deaf(verbs.Ring):
    """A ring of four whose queue pairs say nothing: completions are told by hand."""

    def __init__(self) -> None:
        self._place = verbs.Place(1, 1, 0, 2, 4)
        self._written = self._arrived = 0


def test_a_failed_write_a_failed_arrival_and_a_step_too_early_end_a_rank() -> None:
    ring = Deaf()
    ring._count(Done(17, False, 0, ""))
    ring._count(Done(18, True, 0, ""))
    assert (ring._written, ring._arrived) == (1, 1)
    with pytest.raises(verbs.GaveUp, match="queue pair 17 with rank 2: transport retry counter exceeded"):
        ring._count(Done(17, False, 0, "transport retry counter exceeded"))
    with pytest.raises(verbs.GaveUp, match="queue pair 18 with rank 0: Work Request Flushed Error"):
        ring._count(Done(18, True, 0, "Work Request Flushed Error"))
    with pytest.raises(verbs.GaveUp, match="write 2 of rank 0 came when 1 was due"):
        ring._count(Done(18, True, 2, ""))


def test_structures_are_as_large_as_libibverbs_has_them() -> None:
    """By sizeof and offsetof of a C program with infiniband/verbs.h (rdma-core 44, x86-64)."""
    sizes = {"Route": 24, "Address": 32, "Capacity": 20, "Attributes": 144, "Wanted": 64, "Piece": 16, "Send": 128}
    sizes |= {"Receive": 32, "Completion": 48}
    assert {name: ctypes.sizeof(getattr(libibverbs_abi, name)) for name in sizes} == sizes
    abi = libibverbs_abi
    places = [
        *((abi.Send.imm_data, 36), (abi.Send.remote_addr, 40), (abi.Send.rkey, 48), (abi.Completion.qp_num, 28)),
        *((abi.Context.poll_cq, 96), (abi.Context.req_notify_cq, 104), (abi.Context.post_send, 208)),
        *((abi.Context.post_recv, 216), (abi.Context.cmd_fd, 264), (abi.Channel.fd, 8), (abi.RawQueuePair.qp_num, 52)),
        *((abi.Memory.rkey, 40), (abi.Attributes.timeout, 130), (abi.Attributes.rate_limit, 136)),
    ]
    assert [(field.offset, wanted) for field, wanted in places if field.offset != wanted] == []


def test_ranks_of_a_rail_are_those_of_its_interface() -> None:
    ranks = [ClientRank(n, f"h{n}", f"h{n}.r0", f"10.0.0.{n}", f"bond{n % 2}") for n in range(4)]
    assert [[rank.rank for rank in of] for of in rdma.rails(ranks)] == [[0, 2], [1, 3]]
