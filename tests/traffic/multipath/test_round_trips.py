"""Time that a packet may take: by round trips before, and doubled once for a flight that nothing came back of."""

from __future__ import annotations

from hpn.traffic.multipath.round_trips import MOST_EXPIRIES, RoundTrips

SLACK_NS, FIRST_NS, RTT_NS = 2_000, 100_000, 1_000


def _known() -> RoundTrips:
    trips = RoundTrips(SLACK_NS, FIRST_NS)
    for _ in range(64):
        trips.on_round_trip(RTT_NS)
    return trips


def test_until_a_round_trip_is_known_it_may_take_the_first_time() -> None:
    trips = RoundTrips(SLACK_NS, FIRST_NS)
    assert (trips.smooth_ns, trips.patience_ns(trips.expiries)) == (0, FIRST_NS)


def test_packets_of_one_flight_double_the_time_of_the_next_once() -> None:
    trips = _known()
    once_ns = trips.patience_ns(0)
    assert RTT_NS + SLACK_NS <= once_ns <= RTT_NS + SLACK_NS + 10
    for _ in range(13):
        trips.on_expiry(0)
    assert trips.patience_ns(trips.expiries) == 2 * once_ns
    trips.on_expiry(1)
    assert trips.patience_ns(trips.expiries) == 4 * once_ns


def test_a_round_trip_ends_that_and_no_time_is_longer_than_the_first() -> None:
    trips = _known()
    once_ns = trips.patience_ns(0)
    for expiries in range(20):
        trips.on_expiry(min(expiries, MOST_EXPIRIES))
    assert trips.patience_ns(trips.expiries) == FIRST_NS
    trips.on_round_trip(RTT_NS)
    assert trips.patience_ns(trips.expiries) <= once_ns
    trips.on_expiry(5)
    assert trips.expiries == 1, "of an earlier flight"
