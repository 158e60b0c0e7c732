"""Location of a fault from what end hosts see: in a run that has ended, or in a lab that is up."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import click

from hpn.commands.completing import runs
from hpn.commands.followers import tell_next
from hpn.commands.page import Length, Page, Share, json_option, lab_option
from hpn.failover.locating.methods import METHODS
from hpn.failover.locating.sources import SOURCES
from hpn.testbed.errors import InputError


@click.command()
@click.argument("run", required=False, type=click.Path(file_okay=False, path_type=Path), shell_complete=runs)
@lab_option
@click.option("--for", "for_ns", type=Length(), help="Of a lab: how long, such as '10 s'; default: until Ctrl-C.")
@click.option("--rate", type=Share(), help="Of a lab: share of each NIC's rate that probes take.  [default: 0.1 %]")
@click.option(
    "--queue-pairs", type=click.IntRange(1, 64), help="Of a lab: probes from a NIC to each partner.  [default: 4]"
)
@click.option(
    "--method",
    type=click.Choice([*METHODS]),
    default=next(iter(METHODS)),
    show_default=True,
    help="; ".join(f"{method.name}: {method.summary}" for method in METHODS.values()) + ".",
)
@click.option(
    "--source",
    type=click.Choice([*SOURCES]),
    help="Of a run: "
    + "; ".join(f"{source.name}: {source.summary}" for source in SOURCES.values())
    + ".  [default: loss; of a job: retries]",
)
@json_option
def locate(
    run: Path | None,
    lab_name: str | None,
    for_ns: int | None,
    rate: float | None,
    queue_pairs: int | None,
    method: str,
    source: str | None,
    as_json: bool,
) -> None:
    """Say which link, direction of a link, or node explains the packets that were lost, and since when.

    With RUN it is the loss of that run's streams, what its job retransmitted, or another source, and the answer is
    compared with the faults that its drill injected. Without RUN, probes are sent in the lab that is up, and each new
    answer is a line: until --for, Ctrl-C or the end of the lab. With --json each line is a document.

    Only end hosts are asked: what each flow sent and received, and the path that each switch's kernel gave it. Counters
    of switches are used where they are the source that you name. Every 100 ms the method looks at what came since the
    first loss, and if it is not sure, at the last 0.5, 3 and 30 s. Parts that the same paths cross cannot be told
    apart; they are named together.

    \b
    hpn drill run probes-dirty-fibre --engine uml-virtual-time --out run
    hpn locate run/probes-dirty-fibre
    hpn locate run/probes-dirty-fibre --source delay

    \b
    hpn up tiny
    hpn locate --for '30 s'
    """
    live = {"--lab": lab_name, "--for": for_ns, "--rate": rate, "--queue-pairs": queue_pairs}
    if run is None:
        if source is not None:
            raise InputError("--source is for a run; a lab that is up is asked for lost probes: leave it out")
        _locate_in_lab(lab_name, for_ns, 0.001 if rate is None else rate, queue_pairs or 4, method, as_json)
        return
    if told := [name for name, value in live.items() if value is not None]:
        raise InputError(f"{told[0]} is for a lab that is up; a run has what it has: leave it out, or leave {run} out")
    _locate_in_run(run, method, source, as_json)


def _locate_in_run(run: Path, method: str, source: str | None, as_json: bool) -> None:
    from hpn.results.run.folder import load
    from hpn.results.run.location import located_in
    from hpn.results.text.location import columns, document, lines, rows
    from hpn.results.text.tables import table

    page = Page(as_json)
    found, share = located_in(load(run), method, source)
    page.show(table("", columns(found.source), rows(found), keys=3, empty="nobody is accused"))
    if not as_json:
        for line in lines(found, share):
            page.tell(line)
    tell_next("locate", run=run)
    page.end(lambda: document(found, share))


def _locate_in_lab(
    name: str | None, for_ns: int | None, rate: float, queue_pairs: int, method: str, as_json: bool
) -> None:
    from hpn.testbed.kernel.process.sandbox import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before numpy is imported: this process enters the lab
    from hpn.results.text.live_location import LiveText
    from hpn.scenarios.run.locating.attached import Asked, Heard, locate_in
    from hpn.testbed.lab.service import control, registry

    if not rate:
        raise InputError("--rate of 0 sends no probe, and nothing else is asked; take 0.1 %")
    place, record = registry.find(name)
    control.call(place.socket, "wait")
    fabric = registry.fabric_of(place)
    text = LiveText(record.name)
    if as_json:
        heard = Heard(
            lambda *told: click.echo(json.dumps(text.probes_document(*told))),
            lambda found: click.echo(json.dumps(text.answer_document(found))),
        )
    else:
        heard = Heard(
            lambda *told: _print(text.probes(*told)),
            lambda found: _print(text.answer(found)),
        )
    asked = Asked(rate, queue_pairs, method, for_ns)
    if locate_in(record.first_pid, place.socket, fabric, asked, heard):
        click.echo(f"lab {record.name} is down", err=as_json)
    elif text.first is not None:
        tell_next("locate", quiet=as_json, lab=record.name)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
