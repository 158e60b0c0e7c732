"""Networks in memory that run the machines of all ranks: one in which anything overtakes, one with links of a rate."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from hpn.traffic.collectives.compose import Composer
from hpn.traffic.collectives.locations import Inside, Place
from hpn.traffic.collectives.program import Program, Timed
from hpn.traffic.collectives.rank import Post, RankMachine
from hpn.traffic.collectives.registry import collective

MTU = 1024
INSIDE = Inside(nvlink_bps=100e9)


def hosts_of(n: int, rails: int = 1) -> list[Place]:
    """``n`` ranks, ``rails`` to a host."""
    return [
        Place(f"h{i // rails}", i % rails, f"h{i // rails}.r{i % rails}", f"10.{i % rails}.0.{i // rails}", 0)
        for i in range(n)
    ]


def one(
    kind: str, algorithm: str, n: int, size: int, *, slices: int = 1, rails: int = 1, mtu: int = MTU
) -> tuple[Program, ...]:
    """The programs of one collective of ``n`` ranks."""
    composer = Composer(hosts_of(n, rails), mtu, INSIDE)
    composer.collective(collective(kind, algorithm), range(n), size, kind, slices=slices)
    return composer.programs()


@dataclass
class Outcome:
    """What the ranks timed, and the bytes each pair of ranks exchanged over the network, and inside hosts."""

    timed: dict[int, list[Timed]] = field(default_factory=dict)
    wire: Counter[tuple[int, int]] = field(default_factory=Counter)
    local: Counter[tuple[int, int]] = field(default_factory=Counter)
    rails: set[tuple[int, int, int]] = field(default_factory=set)  # source, target, rail

    @property
    def wrong(self) -> int:
        return sum(timed.wrong for of_rank in self.timed.values() for timed in of_rank)

    def count(self, source: int, post: Post) -> None:
        if post.rail is None:
            self.local[source, post.peer] += post.size_bytes
        else:
            self.wire[source, post.peer] += post.size_bytes
            self.rails.add((source, post.peer, post.rail))


def shuffled(programs: Sequence[Program], seed: int, iterations: int = 1, first: int = 0) -> Outcome:
    """Run all ranks: messages arrive in parts, in any order, some twice; acknowledgements and timers at any time.

    A rank begins its next iteration whenever it likes. Fails when nothing is left to happen before all have ended.
    """
    rng = random.Random(seed)
    machines = {program.rank: RankMachine(program, first) for program in programs}
    outcome = Outcome({rank: [] for rank in machines})
    in_flight: list[tuple[int, Post, list[tuple[int, int]]]] = []  # source, message, parts to deliver
    left = dict.fromkeys(machines, iterations)
    now = 0

    def posted(rank: int, posts: Sequence[Post]) -> None:
        for post in posts:
            outcome.count(rank, post)
            in_flight.append((rank, post, _parts(len(post.words), rng)))
        outcome.timed[rank] += machines[rank].take_timed()

    while True:
        now += 1
        idle = [rank for rank, machine in machines.items() if machine.idle and left[rank]]
        waiting = [rank for rank, machine in machines.items() if machine.deadline_ns() is not None]
        choices = [("start", rank) for rank in idle] + [("timer", rank) for rank in waiting]
        if in_flight and (not choices or rng.random() < 0.9):
            at = rng.randrange(len(in_flight))
            source, post, parts = in_flight[at]
            if parts:
                begin, end = parts.pop()
                posted(
                    post.peer,
                    machines[post.peer].on_bytes(
                        source, post.tag, begin * programs[0].path_mtu, post.words[begin:end], now
                    ),
                )
            else:
                in_flight.pop(at)
                posted(source, machines[source].on_sent(post.op, now))
        elif choices:
            what, rank = rng.choice(choices)
            machine = machines[rank]
            if what == "start":
                left[rank] -= 1
                posted(rank, machine.start(first + iterations - left[rank] - 1, now))
            else:
                now = max(now, machine.deadline_ns() or 0)
                posted(rank, machine.on_timer(now))
        else:
            break
    assert all(machine.idle for machine in machines.values()), "some rank waits for what never comes"
    return outcome


def _parts(blocks: int, rng: random.Random) -> list[tuple[int, int]]:
    """Ranges that cover all blocks in any order; some blocks twice."""
    cuts = sorted({0, blocks, *(rng.randrange(blocks + 1) for _ in range(rng.randrange(3)))})
    parts = [(a, b) for a, b in itertools.pairwise(cuts) if a < b]
    if rng.random() < 0.3:
        parts.append(rng.choice(parts))
    rng.shuffle(parts)
    return parts


def timed(programs: Sequence[Program], rate_bps: float, latency_ns: int = 0, iterations: int = 1) -> Outcome:
    """Run all ranks over NICs that send and receive ``rate_bps`` of payload each, packet by packet.

    A NIC sends packet by packet in the order of posting; what converges on a NIC queues there without end. Messages
    inside a host take no time of their own. An acknowledgement takes ``latency_ns``, as data does.
    """
    machines = {program.rank: RankMachine(program) for program in programs}
    outcome = Outcome({rank: [] for rank in machines})
    events: list[tuple[int, int, str, int, Post | None, int]] = []
    free_out: dict[int, float] = {}
    free_in: dict[int, float] = {}
    left = dict.fromkeys(machines, iterations)
    mtu, serial = programs[0].path_mtu, 0

    def push(at: float, what: str, rank: int, post: Post | None = None, block: int = 0) -> None:
        nonlocal serial
        serial += 1
        heappush(events, (round(at), serial, what, rank, post, block))

    def cost(post: Post, block: int) -> float:
        return min(mtu, post.size_bytes - block * mtu) * 8e9 / rate_bps

    def posted(rank: int, posts: Sequence[Post], now: int) -> None:
        machine = machines[rank]
        for post in posts:
            outcome.count(rank, post)
            if post.rail is None:
                push(now, "arrive", rank, post, -1)
                continue
            for block in range(len(post.words)):
                free_out[rank] = max(now, free_out.get(rank, 0)) + cost(post, block)
                push(free_out[rank] + latency_ns, "queue", rank, post, block)
        outcome.timed[rank] += machine.take_timed()
        if machine.idle and left[rank]:
            left[rank] -= 1
            posted(rank, machine.start(iterations - left[rank] - 1, now), now)
        deadline = machine.deadline_ns()
        if deadline is not None:
            push(max(deadline, now), "timer", rank)

    for rank in machines:
        posted(rank, [], 0)
    while events:
        now, _, what, rank, post, block = heappop(events)
        if what == "timer":
            deadline = machines[rank].deadline_ns()
            if deadline is not None and deadline <= now:
                posted(rank, machines[rank].on_timer(now), now)
        elif post is not None and what == "queue":
            free_in[post.peer] = max(now, free_in.get(post.peer, 0) + cost(post, block))
            push(free_in[post.peer], "arrive", rank, post, block)
        elif post is not None and what == "arrive":
            words = post.words if block < 0 else post.words[block : block + 1]
            offset = max(block, 0) * mtu
            posted(post.peer, machines[post.peer].on_bytes(rank, post.tag, offset, words, now), now)
            if block in {-1, len(post.words) - 1}:
                push(now + (latency_ns if block >= 0 else 0), "sent", rank, post)
        elif post is not None:
            posted(rank, machines[rank].on_sent(post.op, now), now)
    assert all(machine.idle for machine in machines.values()), "some rank waits for what never comes"
    return outcome
