"""Live display of a running lab in a terminal, or as lines in a pipe."""

from __future__ import annotations

import math
import time
from contextlib import closing, suppress

import click

from hpn.commands.completing import labs
from hpn.commands.page import Length, lab_option, terminal
from hpn.results.watch.outputs import JsonLines, Log, Screen, View
from hpn.results.watch.snapshot import Snapshot
from hpn.testbed.errors import InputError
from hpn.testbed.events import now_ns
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.process.processes import interrupted_by_any_signal
from hpn.testbed.kernel.rtnetlink.qdisc import rates
from hpn.testbed.lab.service import control, registry, status
from hpn.testbed.lab.service.labfolder import LabFolder, LabRecord
from hpn.testbed.lab.service.load import PortReader, reader_outside

_TOGETHER_S = 0.1  # events within this time are shown together
_LEAST_NS = 100_000_000


@click.command()
@click.argument("lab", required=False, metavar="", shell_complete=labs)
@click.option("--every", "every_ns", type=Length(), default="1 s", show_default=True, help="How often rates are taken.")
@click.option("--for", "for_ns", type=Length(), help="How long, such as '10 s'; default: until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: the lab every so often, events as they come.")
@lab_option
def watch(lab: str | None, lab_name: str | None, every_ns: int, for_ns: int | None, as_json: bool) -> None:
    """Watch a running lab: what is wrong first, then planes, rails, links with rates, LACP and BGP, and events.

    In place on a terminal; in a pipe a block, then a line per change. It ends with Ctrl-C, or when the lab is ended;
    with exit code 3 as soon as the lab's supervisor is dead.
    """
    if every_ns < _LEAST_NS:
        raise InputError(f"--every of {every_ns / 1e6:g} ms would keep the machine busy; take at least 100 ms")
    if None not in (lab, lab_name):
        raise InputError(f"one lab at a time; say --lab {lab_name}")
    place, record = registry.find(lab_name or lab)
    fabric = registry.fabric_of(place)
    control.call(place.socket, "wait")  # a lab that is starting is watched once it is up
    with interrupted_by_any_signal(), suppress(KeyboardInterrupt):
        with closing(reader_outside(record.first_pid, fabric)) as ports, _view(as_json) as view:
            ended = _watch(_Watched(place, record, fabric, ports), view, _Due(every_ns / 1e9, for_ns))
        if ended:
            click.echo(f"lab {record.name} is down", err=as_json)


def _view(as_json: bool) -> View:
    console, offset_ns = terminal(), time.time_ns() - now_ns()
    if as_json:
        return JsonLines(click.echo)
    if console.is_terminal and not console.is_dumb_terminal:
        return Screen(console, offset_ns)
    return Log(click.echo, offset_ns)


class _Watched:
    """A lab, and the latest counters of its ports."""

    def __init__(self, place: LabFolder, record: LabRecord, fabric: Fabric, ports: PortReader) -> None:
        self._place, self._record, self._fabric, self._ports = place, record, fabric, ports
        self.socket = place.socket
        self._last = ports.read()
        self._rates = rates(self._last, ())

    def count(self) -> None:
        """Read the counters again."""
        now = self._ports.read()
        self._rates, self._last = rates(self._last, now), now

    def look(self) -> Snapshot:
        """Return the lab's state, with its problems from the supervisor."""
        found = status.from_json(control.call(self.socket, "status"))
        up_s = time.time() - self._record.started_at
        return Snapshot(self._record.name, self._record.datapath, up_s, self._fabric, found, self._rates)


class _Due:
    """Schedule of the display, by CLOCK_MONOTONIC in seconds."""

    def __init__(self, every_s: float, for_ns: int | None) -> None:
        now = time.monotonic()
        self._every_s = every_s
        self._end = math.inf if for_ns is None else now + for_ns / 1e9
        self._count, self._draw = now + every_s, math.inf

    def wait_s(self) -> float:
        """Return the time until the next action."""
        return min(self._end, self._count, self._draw) - time.monotonic()

    def heard(self) -> None:
        """Schedule a redraw soon after an event, together with events that follow shortly."""
        self._draw = min(self._draw, time.monotonic() + _TOGETHER_S)

    def count(self) -> bool:
        """Return True if counters are due; a redraw then is, too."""
        now = time.monotonic()
        if now < self._count:
            return False
        self._count, self._draw = now + self._every_s, now
        return True

    def draw(self) -> bool:
        """Return True if a redraw is due."""
        if time.monotonic() < self._draw:
            return False
        self._draw = math.inf
        return True

    @property
    def over(self) -> bool:
        """True if the end has come."""
        return time.monotonic() >= self._end


def _watch(lab: _Watched, view: View, due: _Due) -> bool:
    """Show the lab until the time is over (False) or the lab has ended (True)."""
    view.show(lab.look())
    looked: list[Snapshot] = []
    for events in control.follow(lab.socket, "events", lambda: 0 if looked else due.wait_s()):
        if events:
            view.hear(events)
            due.heard()
        if looked:  # after the events that led to this state
            view.show(looked.pop())
        if due.count():
            lab.count()
        if due.draw():
            with suppress(control.SupervisorGone):  # meanwhile; whether the lab was ended the events say
                looked.append(lab.look())
        if due.over:
            return False
    return True
