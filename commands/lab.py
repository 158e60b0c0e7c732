"""Labs by hand: plan, start, look, capture, stop."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from hpn.commands.completing import labs, nics, nodes, parts, topologies
from hpn.commands.followers import tell_next
from hpn.commands.page import Length, as_json_option, lab_option, raise_neighbours_option, show
from hpn.results.text.live import LiveUp
from hpn.results.text.tables import inventory_tables, rows_table, table
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.buffer_rules import buffer_notes
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel.packets.capture import WHOLE_BYTES
from hpn.testbed.lab.service import attach, control, preflight, registry, supervisor
from hpn.testbed.lab.service.capture import capture as record_links
from hpn.testbed.lab.service.capture import links_of
from hpn.testbed.lab.service.labfolder import DIED, LOST, UP, LabRecord
from hpn.testbed.lab.service.metrics import exporter
from hpn.testbed.routing.deadlock import deadlock_notes
from hpn.testbed.routing.own.plan_notes import plan_notes
from hpn.testbed.routing.srv6.summary import srv6_notes


@click.command()
@click.argument("topology", default="tiny", shell_complete=topologies)
@click.option("--json", "as_json", is_flag=True, help="Print the inventory as JSON.")
def plan(topology: str, as_json: bool) -> None:
    """Print the inventory of a preset or topology file, at any size; nothing is built.

    Where hpn up would refuse it on this machine, that is told too, with what is in the way.
    """
    fabric = load_fabric(topology)
    found, refused = inventory(fabric), preflight.refusals(fabric, fabric.spec.name)
    if as_json:
        click.echo(json.dumps({"name": fabric.spec.name} | asdict(found) | {"refused": refused}, indent=2))
        return
    show(*inventory_tables(found, fabric.spec.name))
    for note in (*plan_notes(fabric), *buffer_notes(fabric), *deadlock_notes(fabric), *srv6_notes(fabric)):
        click.echo(f"note: {note}")
    for line in ("hpn up refuses it on this machine:", *(f"  {each}" for each in refused)) if refused else ():
        click.echo(line)
    if refused:
        click.echo(f"in virtual time: hpn drill validate link-down --topology {shlex.quote(topology)} says whether")
        tell_next("plan", too_large=topology)
    else:
        tell_next("plan", topology=topology)


@click.command()
@as_json_option
def presets(as_json: bool) -> None:
    """List the named topologies."""
    if as_json:
        click.echo(json.dumps([{"name": p.name, "summary": p.summary} for p in PRESETS.values()], indent=2))
        return
    show(table("presets", ("name", "what it is good for"), ((p.name, p.summary) for p in PRESETS.values())))
    tell_next("presets", preset="tiny")


METRICS_PORT = 9476
"""Default port: 'hpn' on a telephone keypad, after the 9 with which most exporters' ports begin."""


class _TcpPort(click.ParamType[int]):
    """A TCP port; the error for other text after --metrics hints that the topology comes first."""

    name = "port"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return a port number, 0 to 65535."""
        text = str(value)
        if not (text.isdecimal() and text.isascii() and int(text[:6]) < 1 << 16 and len(text) < 6):
            self.fail(f"{text!r} is no TCP port; a topology stands first: hpn up {text} --metrics", param, ctx)
        return int(text)


@click.command()
@click.argument("topology", default="tiny", shell_complete=topologies)
@click.option("--name", help="Name of the lab; default: the topology's.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option(
    "--metrics",
    "metrics_port",
    type=_TcpPort(),
    is_flag=False,
    flag_value=METRICS_PORT,
    metavar="[PORT]",
    help=f"Serve Prometheus metrics on 127.0.0.1; {METRICS_PORT} without PORT, 0: any that is free.",
)
@raise_neighbours_option("the lab is up")
def up(topology: str, name: str | None, quiet: bool, metrics_port: int | None, raise_neighbour_limit: bool) -> None:
    """Start a lab of a preset or topology file and return when it is converged."""
    fabric = load_fabric(topology)
    started = time.monotonic()
    with nullcontext() if metrics_port is None else exporter.listen(metrics_port) as listening:
        request = supervisor.Request(
            name or fabric.spec.name, topology, fabric, listening, raise_neighbours=raise_neighbour_limit
        )
        launched = _launch(request, quiet)
    if not quiet:
        click.echo(
            f"lab {launched.name}: {launched.nodes} nodes, {launched.links} links, LAG datapath {launched.datapath},"
            f" converged after {time.monotonic() - started:.2f} s"
        )
        click.echo(_neighbours_line(launched))
        if launched.metrics:
            click.echo(f"metrics: {launched.metrics}")
    tell_next("up", quiet=quiet, lab=launched.name, part=fabric.links[0].name)


def _neighbours_line(launched: LabRecord) -> str:
    """Return a line about the lab's entries in the machine's neighbour table."""
    if launched.neighbour_limit:
        raised = f"limit raised to {launched.neighbour_limit} until the lab is down"
        return f"neighbour table: {launched.neighbours} entries; {raised}"
    return f"neighbour table: {launched.neighbours} entries, within the machine's limit"


def _launch(request: supervisor.Request, quiet: bool) -> LabRecord:
    with LiveUp(Console(stderr=True, quiet=quiet), request.name, request.fabric) as listen:
        return supervisor.launch(request, listen, on_up=_see_it_through)


def _see_it_through() -> None:
    """Ignore signals that would end the command: its lab stays up from here on, and the exit code must say so."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@click.command()
@click.argument("name", required=False, shell_complete=labs)
@click.option("--all", "everything", is_flag=True, help="End every lab of yours.")
def down(name: str | None, everything: bool) -> None:
    """End a lab and verify that nothing is left of it; ending one that is not up is no error."""
    labs = there = list(registry.everything())
    if name is not None:
        registry.check_name(name)
        labs = [found for found in there if found[1].name == name]
    elif not everything and len(labs) > 1:
        raise InputError(f"which lab? hpn down NAME, or --all; there are: {', '.join(r.name for _, r in labs)}")
    for place, record in labs:
        supervisor.stop(place)
        click.echo(f"lab {record.name} is down")
    if not labs:
        click.echo("no lab is up" if name is None else f"lab {name} is not up")
    tell_next("down", other=next((r.name for _, r in there if r.state == UP and name not in (None, r.name)), None))


@click.command()
@as_json_option
def ls(as_json: bool) -> None:
    """List your labs: starting, up, ending, lost (its folder was removed), or died with last words."""
    records = [record for _, record in registry.everything()]
    if as_json:
        click.echo(json.dumps([asdict(record) for record in records], indent=2))
        return
    columns = ("name", "state", "topology", ">nodes", ">links", "datapath", ">process", ">age")
    rows = (
        (r.name, r.state, r.topology, r.nodes, r.links, r.datapath, r.first_pid, f"{time.time() - r.started_at:.0f} s")
        for r in records
    )
    show(table("labs", columns, rows, empty="no lab is up; hpn up TOPOLOGY starts one, hpn presets lists topologies"))
    for record in records:
        if record.metrics:
            click.echo(f"{record.name}: metrics at {record.metrics}")
        if record.reason:
            click.echo(f"{record.name}: {record.reason}")
    usable = next((r.name for r in records if r.state == UP), None)
    dead = next((r.name for r in records if r.state in (DIED, LOST)), None)
    tell_next("ls", lab=usable, dead=dead, preset=None if records else "tiny")


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("node", shell_complete=nodes)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
@lab_option
def exec(node: str, command: tuple[str, ...], lab_name: str | None) -> int:
    """Run a command in a node of a lab: hpn exec p0.s0.h0 -- ping -c 3 10.0.1.1"""
    place, record = registry.find(lab_name)
    return attach.execute(record.first_pid, registry.fabric_of(place), node, command)


@click.command()
@click.argument("node", required=False, shell_complete=nodes)
@lab_option
@click.option("--script", type=click.Path(exists=True, dir_okay=False), help="Run these commands instead of asking.")
def shell(node: str | None, lab_name: str | None, script: str | None) -> int:
    """Open Mininet's CLI on a lab, or a shell in one of its nodes."""
    place, record = registry.find(lab_name)
    fabric = registry.fabric_of(place)
    if node is not None:
        return attach.execute(record.first_pid, fabric, node, [os.environ.get("SHELL") or "/bin/sh"])
    return attach.shell(record.first_pid, fabric, sys.stdin, script)


@click.command()
@click.argument("src", shell_complete=nics)
@click.argument("dst", shell_complete=nics)
@click.option("--sport", type=click.IntRange(1, 65535), help="UDP source port; only --srv6 needs none.")
@click.option("--dport", type=click.IntRange(1, 65535), default=4791, show_default=True, help="UDP destination port.")
@click.option("--port", type=click.IntRange(0), help="Port that the queue pair is bound to (queue affinity).")
@click.option("--srv6", is_flag=True, help="List the SRv6 paths between them, with their carriers of uSIDs.")
@click.option("--send", is_flag=True, help="With --srv6: send a probe down each path, and say which arrived.")
@lab_option
@as_json_option
def trace(
    src: str,
    dst: str,
    sport: int | None,
    dport: int,
    port: int | None,
    srv6: bool,
    send: bool,
    lab_name: str | None,
    as_json: bool,
) -> int:
    """Show the exact path a flow takes now, from NIC SRC to NIC DST (such as p0.s0.h0.r0): asked of the kernel."""
    if send and not srv6:
        raise InputError("--send is for --srv6; hpn trace SRC DST --srv6 --send")
    if srv6:
        return _trace_srv6(src, dst, send, lab_name, as_json)
    if sport is None:
        raise click.MissingParameter(param_hint="'--sport'", param_type="option")
    place, record = registry.find(lab_name)
    found = control.call_for_object(place.socket, "trace", src=src, dst=dst, sport=sport, dport=dport, port=port)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        show(rows_table(f"{src} to {dst}, source port {sport}", found["steps"]))
        click.echo(f"dropped: {found['dropped']}" if found["dropped"] else "delivered")
    lost, kept = (record.name, None) if found["dropped"] else (None, record.name)
    tell_next("trace", quiet=as_json, src=src, dst=dst, sport=sport, lab=kept, dropped_in=lost)
    return 1 if found["dropped"] else 0


def _trace_srv6(src: str, dst: str, send: bool, lab_name: str | None, as_json: bool) -> int:
    """Print the SRv6 paths; return 1 if a probe did not arrive."""
    place, record = registry.find(lab_name)
    found = control.call(place.socket, "srv6", src=src, dst=dst, send=send)
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    lost = sum(row.get("arrived") is False for row in rows)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        show(rows_table(f"SRv6 paths from {src} to {dst}", rows, "no path: no switches lead from one to the other"))
        click.echo(f"{len(rows) - lost} of {len(rows)} probes arrived" if send else f"{len(rows)} paths")
    tell_next("trace", quiet=as_json, dropped_in=record.name if lost else None)
    return 1 if lost else 0


@click.command()
@click.argument("part", nargs=-1, shell_complete=parts)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The file to write.")
@click.option("--for", "for_ns", type=Length(), help="How long, such as '2 s'; default: until Ctrl-C.")
@click.option("--snap", type=click.IntRange(64, WHOLE_BYTES), default=WHOLE_BYTES, help="Keep so many bytes a packet.")
@lab_option
@as_json_option
def capture(
    part: tuple[str, ...], out: Path, for_ns: int | None, snap: int, lab_name: str | None, as_json: bool
) -> None:
    """Write what passes on links of a lab to a pcapng file, for Wireshark: hpn capture p0.s0.h0.r0 --out x.pcapng

    A PART is a link (p0.s0.h0.r0.0, p0.s0.t0.0-p0.a0.0), or a NIC (p0.s0.h0.r0) or node (p0.s0.t0.0) for all its links;
    without any it is the whole lab. In the file an interface is a link, listened to at the end further from the hosts.
    """
    place, record = registry.find(lab_name)
    links = links_of(registry.fabric_of(place), part)
    try:
        file = out.open("wb")
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from error
    with file:
        captured = record_links(record.first_pid, links, file, snap, for_ns)
    rows = [asdict(found) for found in captured]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        show(rows_table(str(out), rows, "no link was captured"))
    tell_next("capture", quiet=as_json, file=out)
