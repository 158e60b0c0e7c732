"""Path control on a network that loses, repeats, delays and reorders frames; with flaps, restarts, carrier losses."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.testbed.routing.pathcontrol.destinations import HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import Connection
from hpn.testbed.routing.pathcontrol.tor_view import Standing
from tests.routing.pathsim import MS, PORTS, Noise, PathSim

REFRESH_MS = 500
STEADY = "10.0.0.9"
FLAPPING = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
QUEUE_PAIRS = [Connection(2 * n + odd, ip, 4791, 0xC000 + 2 * n + odd)
               for n, ip in enumerate((*FLAPPING, STEADY)) for odd in (0, 1)]  # fmt: skip

noises = st.builds(Noise, loss=st.floats(0, 0.6), duplication=st.floats(0, 0.5), delay_ms=st.integers(1, 700))
gaps = st.integers(0, 400)
routes = st.tuples(st.just("route"), st.sampled_from((0, 1)), st.sets(st.sampled_from(FLAPPING), min_size=1),
                   st.booleans())  # fmt: skip
nothing: st.SearchStrategy[set[str]] = st.builds(set)
restarts = st.tuples(st.just("restart"), st.sampled_from((0, 1)), nothing, st.just(True))
blinks = st.tuples(st.just("blink"), st.sampled_from((0, 1)), nothing, st.just(True))
Happening = tuple[str, int, set[str], bool]


def play(sim: PathSim, story: list[tuple[int, Happening]]) -> None:
    for gap_ms, (what, plane, ips, there) in story:
        sim.run(gap_ms)
        if what == "route":
            sim.route(plane, sorted(ips), there)
        elif what == "restart":
            sim.restart(plane)
        else:
            sim.blink(0, plane)


@given(noises, st.integers(0, 2**32), st.lists(st.tuples(gaps, routes | restarts | blinks), max_size=25), st.booleans())
@settings(max_examples=150, deadline=None)
def test_one_refresh_after_the_last_trouble_every_host_knows_what_its_tors_know(
    noise: Noise, seed: int, story: list[tuple[int, Happening]], damped: bool
) -> None:
    sim = PathSim([QUEUE_PAIRS] * 2, HostSettings(REFRESH_MS, 1000 if damped else 0), noise, seed)
    play(sim, story)
    sim.noise = Noise()
    sim.run(REFRESH_MS + 5)
    for host in sim.hosts:
        for (plane, ip), there in sim.reachable.items():
            standing = host.standing(PORTS[plane], ip, sim.now)
            assert (standing is not Standing.BAD) == there, (plane, ip)
            assert damped or standing is (Standing.GOOD if there else Standing.BAD)


@given(noises, st.integers(0, 2**32), st.lists(st.tuples(gaps, routes | restarts), max_size=25))
@settings(max_examples=100, deadline=None)
def test_queue_pairs_whose_destination_is_well_in_their_plane_never_move(
    noise: Noise, seed: int, story: list[tuple[int, Happening]]
) -> None:
    sim = PathSim([QUEUE_PAIRS] * 2, HostSettings(), noise, seed)
    play(sim, story)
    sim.run(2000)
    hurt = {(plane, ip) for _, (what, plane, ips, there) in story if what == "route" and not there for ip in ips}
    for moves in sim.moves.values():
        for move in moves:
            assert (QUEUE_PAIRS[move.connection].home_sport % 2, move.dst_ip) in hurt


def most_moves(window_ms: int, hold_ms: int, hold_max_ms: int) -> int:
    """Out and home for free, home again for every hold that fits, and out once more."""
    homeward = 1
    while window_ms >= hold_ms:
        window_ms, hold_ms, homeward = window_ms - hold_ms, min(2 * hold_ms, hold_max_ms), homeward + 1
    return 2 * homeward + 1


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 1500)), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
def test_a_flapping_destination_moves_its_queue_pairs_only_so_often(flaps: list[tuple[int, int]]) -> None:
    made = HostSettings(REFRESH_MS, hold_ms=500, hold_max_ms=8000)
    sim = PathSim([QUEUE_PAIRS], made, Noise(), 1)
    sim.run(100)
    start_ns = sim.now
    for down_ms, up_ms in flaps:
        sim.route(0, FLAPPING[:1], False)
        sim.run(down_ms)
        sim.route(0, FLAPPING[:1], True)
        sim.run(up_ms)
    window_ms = (sim.now - start_ns) // MS
    moves = [move for move in sim.moves[0] if move.connection == 0]
    assert {move.connection for move in sim.moves[0]} == {0}
    # Nothing is forgotten in less than twice the longest hold, so each such window is bounded by itself.
    windows = 1 + window_ms // (2 * 8000)
    assert len(moves) <= windows * most_moves(min(window_ms, 2 * 8000), 500, 8000)
    sim.run(8000 + REFRESH_MS)
    assert sim.hosts[0].sport_of(0) == QUEUE_PAIRS[0].home_sport


def test_twenty_flaps_in_ten_seconds_move_a_queue_pair_three_times_instead_of_forty() -> None:
    found = []
    for hold_ms in (0, 500):
        sim = PathSim([QUEUE_PAIRS], HostSettings(REFRESH_MS, hold_ms, 8000), Noise(), 1)
        sim.run(100)
        for _ in range(20):
            sim.route(0, FLAPPING[:1], False)
            sim.run(100)
            sim.route(0, FLAPPING[:1], True)
            sim.run(400)
        found.append(len(sim.moves[0]))
    assert found == [40, 3]


@given(noises, st.integers(0, 2**32), st.lists(st.tuples(gaps, routes | restarts | blinks), max_size=25))
@settings(max_examples=60, deadline=None)
def test_state_is_bounded_by_the_destinations_and_expires_when_nobody_asks(
    noise: Noise, seed: int, story: list[tuple[int, Happening]]
) -> None:
    sim = PathSim([QUEUE_PAIRS] * 2, HostSettings(REFRESH_MS), noise, seed)
    destinations = len(FLAPPING) + 1
    for happening in story:
        play(sim, [happening])
        assert all(tor.state_size <= 2 * destinations for tor in sim.tors)
        assert all(host.state_size <= len(QUEUE_PAIRS) + 2 * 2 * destinations for host in sim.hosts)
    for host in sim.hosts:
        host.remove([c.id for c in QUEUE_PAIRS])
        assert host.state_size == 0
    sim.run(noise.delay_ms + 3 * REFRESH_MS + 1)
    assert [tor.state_size for tor in sim.tors] == [0, 0]
    assert [tor.deadline_ns for tor in sim.tors] == [None, None]


def test_a_lost_notice_is_noticed_by_the_next_frame() -> None:
    sim = PathSim([QUEUE_PAIRS], HostSettings(60_000), Noise(), 1)
    sim.run(100)
    sim.noise = Noise(loss=1.0)
    sim.route(0, FLAPPING[:1], False)
    sim.run(50)
    assert sim.moves[0] == []
    sim.noise = Noise()
    sim.route(0, FLAPPING[1:2], False)
    sim.run(50)
    assert [move.connection for move in sim.moves[0]] == [2]
    sim.run(60_000 // 8)  # it had just been asked about everything
    assert [move.connection for move in sim.moves[0]] == [2, 0]


def test_a_plane_that_goes_moves_every_queue_pair_of_it_with_one_frame_for_each_host() -> None:
    ips = [f"10.1.0.{n}" for n in range(100)]
    own = [Connection(n, ip, 4791, 0xC000 + n) for n, ip in enumerate(ips)]
    sim = PathSim([own] * 32, HostSettings(60_000), Noise(), 1)
    sim.run(100)
    before = sim.frames
    sim.route(0, ips, False)
    sim.run(10)
    assert sim.frames - before == 32
    assert all(sorted(m.connection for m in moves) == list(range(0, 100, 2)) for moves in sim.moves.values())
    sim.route(0, ips, True)
    sim.run(10)
    assert sim.frames - before == 64
    assert all(host.sport_of(n) == 0xC000 + n for host in sim.hosts for n in range(100))
