"""Data planes that lag behind BGP: a switch that boots announces routes before its forwarding has them.

Seen with SONiC after a crash: up to 10 s (sonic-net/sonic-buildimage issue 21586). From its boot until
``bgp.fib_lag_ms`` after its first session is up, a switch drops whatever it would forward. BGP, LACP and ARP run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.lab.parts import LabParts


class FibLag:
    """The switches of one lab whose data plane lags. ``stop`` and ``start`` are about the forwarding of a switch."""

    def __init__(self, grips: LabParts, stop: Callable[[str], None], start: Callable[[str], None]) -> None:
        self._lab = grips
        self._stop = stop
        self._start = start
        self._lag_ms = grips.fabric.spec.bgp.fib_lag_ms
        self._behind: dict[str, asyncio.TimerHandle | None] = {}

    @property
    def behind(self) -> tuple[str, ...]:
        """Switches whose data plane lags now."""
        return tuple(self._behind)

    def begin(self, switch: str) -> bool:
        """Have a switch that boots forward nothing; return False if its data plane does not lag, or it has no BGP."""
        if not self._lag_ms or not any(link.is_routed for link in self._lab.fabric.links_of(switch)):
            return False
        self._stop(switch)
        self._behind[switch] = None
        self._say(switch, "behind")
        return True

    def hear(self, event: Event) -> None:
        """Start the clock of a switch with its first session."""
        switch, up = event.node, event.kind is EventKind.BGP and event.what == "established"
        if up and switch in self._behind and self._behind[switch] is None:
            loop = asyncio.get_running_loop()
            self._behind[switch] = loop.call_later(self._lag_ms / 1e3, self._programmed, switch)

    def end(self, switch: str) -> None:
        """Forget a switch that crashes."""
        if switch in self._behind:
            timer = self._behind.pop(switch)
            if timer is not None:
                timer.cancel()
            self._start(switch)

    def _programmed(self, switch: str) -> None:
        self.end(switch)
        if switch in self._lab.tors:
            self._lab.tors[switch].on_fib()
        self._say(switch, "programmed")

    def _say(self, switch: str, what: str) -> None:
        self._lab.emit(Event(now_ns(), EventKind.DAEMON, switch, "fib", what))
