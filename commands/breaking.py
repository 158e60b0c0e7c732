"""Faults by hand in a lab, their repair, and the events that follow.

Changes when parts of a running lab are broken, repaired or followed in another way.
"""

from __future__ import annotations

import json

import click

from hpn.commands.completing import parts
from hpn.commands.followers import tell_next
from hpn.commands.page import Share, as_json_option, lab_option
from hpn.results.text.tables import change_lines
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.lab.service import control, registry


@click.command("break")
@click.argument("target", shell_complete=parts)
@click.option("--loss", type=Share(), help="Lose that share of the packets on its links instead, unnoticed: '1 %'.")
@click.option("--direction", type=click.Choice(["up", "down", "both"]), help="Of the loss.  [default: both]")
@lab_option
@as_json_option
def break_(target: str, loss: float | None, direction: str | None, lab_name: str | None, as_json: bool) -> None:
    """Break a part of a lab by hand, until: hpn mend.

    A link (p0.s0.h0.r0.0, p0.s0.t0.0-p0.a0.0) or every port of a NIC (p0.s0.h0.r0) or host (p0.s0.h0) loses carrier;
    a ToR (p0.s0.t0.0), Agg (p0.a0.0) or Core (c0.0) crashes. Names: hpn inspect nodes, hpn inspect links.

    With --loss carrier, LACP and BGP stay: hpn locate finds it.
    """
    if loss is None and direction is not None:
        raise InputError("--direction is that of a --loss")
    place, record = registry.find(lab_name)
    if loss is not None:
        change = control.call(place.socket, "break", target=target, loss=loss, direction=direction or "both")
        _show_change(change, "down", as_json)
        tell_next("break", quiet=as_json, lossy=record.name)
        return
    _show_change(control.call(place.socket, "break", target=target), "down", as_json)
    if not as_json:
        src, dst = _nics_at(registry.fabric_of(place), target)
        tell_next("break", part=target, lab=record.name, src=src, dst=dst)


def _nics_at(fabric: Fabric, part: str) -> tuple[str, str]:
    """Return a NIC that the part serves, and one of the same rail on another host: a flow that the fault may affect."""
    links = {link.name for link in fabric.links_in(part)}
    near = next((nic for nic in fabric.nics if any(link.name in links for link in nic.links)), fabric.nics[0])
    return near.name, next((nic.name for nic in fabric.nics if nic.host != near.host and nic.rail == near.rail), "")


@click.command()
@click.argument("target", required=False, shell_complete=parts)
@click.option("--all", "everything", is_flag=True, help="Undo every hpn break of the lab.")
@lab_option
@as_json_option
def mend(target: str | None, everything: bool, lab_name: str | None, as_json: bool) -> None:
    """Undo: hpn break TARGET. What else is broken, a link of that host for instance, stays so.

    What is broken: hpn inspect broken.
    """
    if everything == (target is not None):
        raise InputError("name the part to mend, or say --all; hpn inspect broken lists what is broken")
    place, record = registry.find(lab_name)
    change = control.call(place.socket, "mend-all") if everything else control.call(place.socket, "mend", target=target)
    _show_change(change, "up", as_json)
    tell_next("mend", quiet=as_json, lab=record.name)


@click.command()
@lab_option
def events(lab_name: str | None) -> None:
    """Follow the timeline of a lab as JSON lines until Ctrl-C."""
    place, _ = registry.find(lab_name)
    control.call(place.socket, "events", on_event=lambda event: click.echo(json.dumps(event)))


def _show_change(change: control.JsonValue, direction: str, as_json: bool) -> None:
    """Print the changes of a break (direction 'down') or of a repair ('up')."""
    if as_json:
        click.echo(json.dumps(change, indent=2))
    elif isinstance(change, dict):
        for line in change_lines(change, direction):
            click.echo(line)
