"""Steering on a network that loses, repeats, delays and reorders frames; with flaps, restarts, carrier losses."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.testbed.routing.pathcontrol.actions import Action, Steer
from hpn.testbed.routing.pathcontrol.destinations import Destinations, HostSettings
from hpn.testbed.routing.pathcontrol.steering import ALSO, SteeringAgent
from tests.routing.pathsim import PORTS, Noise, PathSim
from tests.routing.test_path_protocol import FLAPPING, STEADY, Happening, blinks, gaps, noises, play, restarts, routes

REFRESH_MS = 500


class SteeringSim(PathSim):
    """The same network; its hosts steer, and what their kernels would is kept in ``kernels``."""

    def __init__(self, noise: Noise, seed: int) -> None:
        super().__init__([[], []], HostSettings(REFRESH_MS, 0), noise, seed)
        self.kernels: list[dict[tuple[str, str], str]] = [{}, {}]
        self.route(0, [*FLAPPING, STEADY], True)
        self.route(1, [*FLAPPING, STEADY], True)
        agents = [
            SteeringAgent("", PORTS, Destinations(f"h{n}", PORTS, HostSettings(REFRESH_MS, 0), 0, ALSO)) for n in (0, 1)
        ]
        self.hosts = agents  # type: ignore[assignment]  # hear and answer as the others do
        for n, agent in enumerate(agents):
            self.by_host(n, agent.set_active(PORTS, self.now))

    def by_host(self, host: int, actions: Sequence[Action]) -> None:
        """Steer as the kernel would."""
        for action in actions:
            if isinstance(action, Steer) and action.to_port is not None:
                self.kernels[host][action.from_port, action.dst_ip] = action.to_port
            elif isinstance(action, Steer):
                del self.kernels[host][action.from_port, action.dst_ip]
        super().by_host(host, actions)


@given(noises, st.integers(0, 2**32), st.lists(st.tuples(gaps, routes | restarts | blinks), max_size=25))
@settings(max_examples=80, deadline=None)
def test_one_refresh_after_the_last_trouble_exactly_what_one_plane_lost_is_steered_to_the_other(
    noise: Noise, seed: int, story: list[tuple[int, Happening]]
) -> None:
    sim = SteeringSim(Noise(), seed)
    sim.run(2 * REFRESH_MS)
    sim.noise = noise
    play(sim, story)
    sim.noise = Noise()
    sim.run(REFRESH_MS + 10)
    lost = {
        (PORTS[plane], ip): PORTS[1 - plane]
        for (plane, ip), there in sim.reachable.items()
        if not there and sim.reachable[1 - plane, ip]
    }
    assert sim.kernels == [lost, lost]


def test_a_host_that_starts_while_a_nic_is_gone_in_one_plane_steers_from_its_first_second_on() -> None:
    sim = SteeringSim(Noise(), 1)
    sim.route(0, [STEADY], False)
    late = SteeringAgent("", PORTS, Destinations("h1", PORTS, HostSettings(REFRESH_MS, 0), 0, ALSO))
    sim.hosts[1] = late  # type: ignore[call-overload]
    sim.kernels[1] = {}
    sim.by_host(1, late.set_active(PORTS, sim.now))
    sim.run(5)
    assert sim.kernels[1] == {(PORTS[0], STEADY): PORTS[1]}
