"""Clients that behave, and clients that do not: real processes, each named, ended, and nothing left of any."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hpn.failover.analysis.client import RankEnd
from hpn.failover.analysis.job import JobFacts
from hpn.scenarios.run import clients_on_lab
from hpn.scenarios.run.clients_on_lab import LabClients
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.process.processes import own_pids
from hpn.traffic.client.client import Site
from hpn.traffic.client.registry import CLIENTS

pytestmark = pytest.mark.kernel

FABRIC = build(PRESETS["tiny"].spec)
STEPS = "echo hpn ready; read line; sleep 0.1; echo hpn step 0 sum=aa; "
LONG_S = 20.0
S = 10**9
FOREVER = "exec sleep 1000"


class _Run:
    """Two ranks of a shell script in one namespace, from their start to their end."""

    def __init__(self, script: str, folder: Path, **keys: object) -> None:
        options = {"run": "command", "ranks": 2, "command": ["/bin/sh", "-c", script], **keys}
        client = CLIENTS["command"].model_validate(options, strict=True)
        here = ns.current("here")
        spaces: Mapping[str, ns.NetNs] = {host.name: here for host in FABRIC.hosts}
        self.events: list[Event] = []
        self.folder = folder
        self.clients = LabClients(FABRIC, spaces, self.events.append, client, Site(folder, sys.executable), polls=False)

    async def go(self, seen: Callable[[_Run], bool]) -> JobFacts:
        """Until something is ``seen``."""
        before = set(own_pids())
        try:
            await self.clients.start()
            begin_ns = now_ns() + 50_000_000
            until_ns = begin_ns + round(LONG_S * 1e9)
            self.clients.begin(begin_ns, until_ns)
            while not seen(self) and now_ns() < until_ns:
                await asyncio.sleep(0.02)
            self.clients.terminate()
            await self.clients.end()
        finally:
            self.clients.close(self.folder)
            shutil.rmtree(clients_on_lab._RENDEZVOUS)
            await asyncio.sleep(0)
            assert set(own_pids()) <= before, "a process is left"
            assert os.listdir("/dev/shm") == SHARED
        facts = self.clients.facts(0)
        assert facts is not None
        return facts

    def log(self, rank: int = 0) -> str:
        return (self.folder / "clients" / f"rank-{rank}.log").read_text()

    def told(self, what: str) -> list[str]:
        assert all(event.kind is EventKind.CLIENT for event in self.events)
        return [str(event.detail.get("text", "")) for event in self.events if event.what == what]


SHARED = os.listdir("/dev/shm")


def all_told(run: _Run) -> bool:
    """Every rank has told a step."""
    return all(run.clients._ledger.count(rank) for rank in run.clients.plan.reporting)


def all_ended(run: _Run) -> bool:
    """Every process has ended."""
    return all(running.ended is not None for running in run.clients._running)


def last_of(words: str, rank: int = 0) -> Callable[[_Run], bool]:
    """The last words of a rank hold these."""
    return lambda run: words in run.clients._running[rank].log.last_words


def _ends(facts: JobFacts) -> tuple[RankEnd, ...]:
    assert facts.client is not None
    return facts.client.ranks


async def test_ranks_tell_steps_until_they_are_asked_to_end(tmp_path: Path) -> None:
    run = _Run(f"{STEPS}{FOREVER}", tmp_path)
    facts = await run.go(all_told)
    assert [(end.rank, end.host, end.steps, end.died) for end in _ends(facts)] == [
        (0, "p0.s0.h0", 1, False),
        (1, "p0.s0.h1", 1, False),
    ]
    assert facts.deaths == ()
    assert len(run.clients.records()) == 2 * 32
    assert run.log(1).splitlines()[0].endswith(" hpn ready")
    assert run.log(1).startswith("-0.")
    assert run.log(1).splitlines()[1].startswith("+0.")


async def test_a_step_that_is_told_late_is_good_to_how_late_it_is_told(tmp_path: Path) -> None:
    """Its own times are two milliseconds, and nothing shows that it was not under way until its line came."""
    told = "echo hpn ready; read a begin b until; sleep 0.4; echo hpn step 0 begin=$begin end=$((begin + 2000000)); "
    facts = await _Run(f"{told}{FOREVER}", tmp_path).go(all_told)
    assert facts.tick_ns >= 0.3 * S
    assert facts.client is not None
    assert (facts.client.told_times, facts.client.compared) == (True, 0)


async def test_a_rank_knows_who_and_where_it_is(tmp_path: Path) -> None:
    script = 'echo "$HPN_RANK/$HPN_WORLD_SIZE $HPN_HOST $HPN_NIC $HPN_ADDRESS $HPN_INTERFACE $HPN_ADDRESSES $PWD $X"; '
    run = _Run(f"{script}{STEPS}{FOREVER}", tmp_path, env={"X": "y z"})
    await run.go(all_told)
    nics = FABRIC.nics_of("p0.s0.h0")[0], FABRIC.nics_of("p0.s0.h1")[0]
    addresses = ",".join(nic.ip for nic in nics)
    said = f"1/2 p0.s0.h1 p0.s0.h1.r0 {nics[1].ip} bond0 {addresses} {clients_on_lab._RENDEZVOUS} y z"
    assert run.log(1).splitlines()[0].split(" ", 1)[1] == said


async def test_a_program_that_knows_nothing_of_us_starts_at_the_begin(tmp_path: Path) -> None:
    run = _Run(f"echo until $HPN_UNTIL_NS; {FOREVER}", tmp_path, starts="begin", reports="none")
    facts = await run.go(last_of("until", 1))
    assert facts.spans == {}
    assert facts.deaths == ()
    assert run.log().startswith("+0.")
    assert int(run.log().split()[-1]) > 0


async def test_one_that_prints_nothing_is_not_ready_in_time(tmp_path: Path) -> None:
    run = _Run(FOREVER, tmp_path, deadline="200 ms")
    with pytest.raises(MachineError, match=r"rank 0 in p0.s0.h0 did not say 'hpn ready' within 200 ms; .* nothing;"):
        await run.go(all_told)


async def test_one_that_ends_before_it_is_ready_is_named_with_its_last_words(tmp_path: Path) -> None:
    run = _Run('test $HPN_RANK = 0 || { echo "no such device" >&2; exit 7; }; echo hpn ready; read x', tmp_path)
    with pytest.raises(MachineError, match=r"rank 1 in p0.s0.h1 ended .*exit code 7.*last words: no such device"):
        await run.go(all_told)


async def test_one_that_gives_up_before_the_run_says_why(tmp_path: Path) -> None:
    run = _Run(f"echo hpn error no GPU; {FOREVER}", tmp_path, ranks=1)
    with pytest.raises(MachineError, match=r"rank 0 in p0.s0.h0 gave up before the run: no GPU"):
        await run.go(all_told)


async def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    run = _Run("", tmp_path, command=["/nonsense"])
    with pytest.raises(MachineError, match=r"ended before it was ready .cannot be started: No such file"):
        await run.go(all_told)


async def test_a_crash_of_one_rank_is_the_death_of_the_job(tmp_path: Path) -> None:
    run = _Run(f"{STEPS}test $HPN_RANK = 0 || kill -SEGV $$; {FOREVER}", tmp_path)
    facts = await run.go(lambda run: bool(run.told("ended")))
    assert [death.queue_pair for death in facts.deaths] == ["rank 1 in p0.s0.h1: killed by signal 11"]
    assert [end.died for end in _ends(facts)] == [False, True]


async def test_giving_up_in_the_run_is_a_death_whatever_the_exit_code(tmp_path: Path) -> None:
    run = _Run(f"{STEPS}echo hpn error lost my peer; exit 0", tmp_path, ranks=1)
    facts = await run.go(all_ended)
    assert [death.queue_pair for death in facts.deaths] == ["rank 0 in p0.s0.h0: lost my peer"]


async def test_work_that_is_done_early_is_no_death(tmp_path: Path) -> None:
    facts = await _Run(f"{STEPS}exit 0", tmp_path).go(all_ended)
    assert facts.deaths == ()
    assert [end.how for end in _ends(facts)] == ["exit code 0", "exit code 0"]
    assert all(end.ended_at_ns is not None for end in _ends(facts))


async def test_what_forks_away_is_ended_with_its_rank_and_counted(tmp_path: Path) -> None:
    run = _Run(f"{STEPS}(setsid sleep 1000 &) ; (setsid sleep 1000 &) ; exit 0", tmp_path)
    facts = await run.go(all_ended)
    assert _ends(facts)[0].how == "exit code 0, and left 2 processes behind"


async def test_one_that_ignores_sigterm_is_killed_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients_on_lab, "_GRACE_S", 0.2)
    script = f"trap '' TERM; sleep 1000 & {STEPS}while :; do sleep 1000; done"
    facts = await _Run(script, tmp_path).go(all_told)
    assert facts.deaths == ()
    assert [end.how for end in _ends(facts)] == ["", ""]


async def test_a_flood_fills_neither_our_memory_nor_the_run_folder(tmp_path: Path) -> None:
    run = _Run(f"{STEPS}exec yes 0123456789", tmp_path, ranks=1)
    facts = await run.go(lambda run: run.clients._running[0].log.is_full)
    assert _ends(facts)[0].steps == 1
    size = (tmp_path / "clients" / "rank-0.log").stat().st_size
    assert 1_000_000 < size < 1_100_000
    assert "more lines" in run.log().splitlines()[-1]
    assert len(run.told("said")) == 101


async def test_a_flood_is_read_no_faster_than_the_loop_bears(tmp_path: Path) -> None:
    """1 MiB at once, and 1 MiB a second from then on; twice that is room for a machine that holds the loop up."""
    run = _Run(f"{STEPS}exec yes $(head -c 4000 /dev/zero | tr '\\0' x)", tmp_path, ranks=1)
    began_ns = now_ns()
    await run.go(lambda run: run.clients._running[0].log.is_full and now_ns() > began_ns + S)
    left_out = int(run.log().splitlines()[-1].split(", ")[1].split()[0])
    assert left_out < 2 * (1 + (now_ns() - began_ns) / S) * (1 << 20)


async def test_what_a_rank_leaves_in_shared_memory_is_gone_with_it(tmp_path: Path) -> None:
    run = _Run(f"echo mine > /dev/shm/hpn-test-$HPN_RANK; {STEPS}ls /dev/shm; {FOREVER}", tmp_path)
    await run.go(last_of("hpn-test-1", 1))
    assert "hpn-test-0" not in run.log(1)


async def test_a_line_without_end_and_what_cannot_be_printed_are_bounded_and_escaped(tmp_path: Path) -> None:
    noise = r"printf 'bad \377\033[2J text\n'; head -c 1000000 /dev/zero | tr '\\0' x"
    run = _Run(f"{noise}; echo; {STEPS}{FOREVER}", tmp_path, ranks=1)
    facts = await run.go(all_told)
    assert r"bad \xff\x1b[2J text" in run.log()
    assert max(map(len, run.log().splitlines())) < 4_200
    assert _ends(facts)[0].steps == 1


async def test_a_step_that_cannot_be_is_no_step_and_is_told(tmp_path: Path) -> None:
    run = _Run(f"{STEPS}echo hpn step 0; echo hpn step x; echo hpn step 2 rank=5; {FOREVER}", tmp_path, ranks=1)
    facts = await run.go(lambda run: len(run.told("misread")) == 3)
    assert facts.client is not None
    assert facts.client.misread == 3
    assert facts.client.first_misread == "'step 0' of rank 0 in p0.s0.h0: rank 0 has told step 0 before"
    assert len(run.told("misread")) == 3
