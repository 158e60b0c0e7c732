"""The sending end of a multipath queue pair in a worker: it waits at each port of its NIC. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hpn.traffic.congestion.control import CongestionControl
from hpn.traffic.jobengine.sending_end import Ended, SendingEnd, Turn, earlier
from hpn.traffic.jobengine.setup import QueuePair, QueuePairReport
from hpn.traffic.multipath.paths import Paths
from hpn.traffic.multipath.requester import MultipathRequester
from hpn.traffic.multipath.round_trips import RoundTrips
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.multipath.settings import EntropyValue, Multipath
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.work import Transport


class PortShare:
    """A multipath queue pair as it waits at one port: an equal part of its rate, by the ports that carry.

    Each has a pace of its own. With one for all, the port that is served first would take what a slow queue pair has.
    """

    def __init__(self, owner: MultipathSender, port: int) -> None:
        self._owner = owner
        self._port = port
        self.next_ns = 0  # earliest time of the next packet by this port

    @property
    def owner(self) -> MultipathSender:
        """The queue pair."""
        return self._owner

    @property
    def rate_bps(self) -> float:
        """Rate by this port."""
        return self._owner.rate_bps / max(self._owner.requester.paths.carrying_ports, 1)

    @property
    def sendable(self) -> bool:
        """True if a packet may leave by this port now."""
        return self._owner.sendable_by(self._port)

    def take(self, most_packets: int, now_ns: int) -> tuple[list[Run], int]:
        """Return the next packets by this port, and their bytes."""
        return self._owner.take_by(self._port, most_packets, now_ns)


class MultipathSender(SendingEnd):
    """Sending end of one queue pair whose packets take many paths. Give it its entropy values before it sends."""

    requester: MultipathRequester

    def __init__(
        self,
        pair: QueuePair,
        transport: Transport,
        control: CongestionControl,
        settings: Multipath,
        ports: int,
        slack_ns: int,
    ) -> None:
        """Create a requester; ``ports``: of its NIC. ``slack_ns`` as in ``RoundTrips``."""
        super().__init__(pair, transport, control)
        paths = Paths(settings, [path % ports for path in range(settings.paths)])
        trips = RoundTrips(slack_ns, transport.timer.wait_ns(0))
        self.requester = MultipathRequester(transport, paths, trips)
        self._shares = tuple(PortShare(self, port) for port in range(ports))
        self._to_probe: Sequence[int] = ()
        self.trims = 0  # packets sent again as a switch had trimmed them
        self._keep_window()

    @property
    def sendable(self) -> bool:
        """True if a packet waits and the window allows it, by whatever port."""
        return self.requester.sendable

    def sendable_by(self, port: int) -> bool:
        """Return True if a packet may leave by that port now."""
        requester = self.requester
        return requester.sendable and requester.paths.carries(port) and requester.room(port) > 0

    def outlets(self) -> Sequence[tuple[int | None, Turn]]:
        """Return its share of each port that has a path."""
        carries = self.requester.paths.carries
        return [(port, share) for port, share in enumerate(self._shares) if carries(port)]

    def _paced(self) -> Sequence[Turn]:
        return self._shares

    def set_values(self, values: Sequence[EntropyValue]) -> None:
        """Use these entropy values from now on."""
        self.requester.set_values(values)

    def take_by(self, port: int, most_packets: int, now_ns: int) -> tuple[list[Run], int]:
        """Return the next packets by that port, which leave now, and their bytes."""
        runs = self.requester.take(port, most_packets, now_ns)
        taken = self._charge(runs, now_ns)
        self._pace(now_ns)
        return runs, taken

    def paths_to_probe(self) -> Sequence[int]:
        """Return, once, the paths that are to be probed now."""
        paths, self._to_probe = self._to_probe, ()
        return paths

    def on_sack(self, sack: Sack, now_ns: int) -> Ended:
        """Handle a selective acknowledgement."""
        heard = self.requester.on_sack(sack, now_ns)
        if heard.trimmed:
            self.trims += 1
            self.control.on_trimmed(self.packet_bytes, now_ns)
        if heard.packets:
            self.control.on_marked(min(heard.marked, heard.packets) * self.packet_bytes, now_ns)
            self.control.on_acked(heard.packets * self.packet_bytes, heard.rtt_ns, now_ns)
        if heard.packets or heard.trimmed:
            self._pace(now_ns)
            self._keep_window()
        return self._ended(list(heard.completions), now_ns)

    def _keep_window(self) -> None:
        """Have no more under way than its control allows, in complete packets."""
        if self.control.window_bytes is not None:
            self.requester.set_window(int(self.control.window_bytes // self.packet_bytes))

    def report(self) -> QueuePairReport:
        """Return the report of this queue pair, with the denials of its paths."""
        return replace(super().report(), denials=tuple(self.requester.paths.denials))

    def path_counters(self) -> Mapping[str, int]:
        """Return what its paths did and carried; ``paths_good`` is the number of good ones now."""
        of = self.requester.paths.counters
        packets = {f"path_packets_{state}": count for state, count in of.packets.items()}
        events = {"path_skips": of.skips, "path_denials": of.denials, "path_assumed_bad": of.assumed}
        probes = {"path_probes": of.probes, "path_answers": of.answers}
        return {**packets, **events, **probes, "path_trims": self.trims, "paths_good": of.good}

    def deadline_ns(self) -> int | None:
        """Return when ``on_timer`` is due: the earlier of the requester's and congestion control's."""
        return earlier(self.requester.deadline_ns(), self.control.next_ns())

    def on_timer(self, now_ns: int) -> Ended:
        """Advance time."""
        control_ns = self.control.next_ns()
        if control_ns is not None and control_ns <= now_ns:
            self.control.on_timer(now_ns)
            self._pace(now_ns)
        due_ns = self.requester.deadline_ns()
        if due_ns is None or due_ns > now_ns:
            return []
        done, probes = self.requester.on_timer(now_ns)
        self._to_probe = (*self._to_probe, *probes)
        return self._ended(done, now_ns)
