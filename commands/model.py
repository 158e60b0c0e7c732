"""Flow-level model: a drill's answer without a lab."""

from __future__ import annotations

from pathlib import Path

import click

from hpn.commands.completing import drill_names
from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.commands.page import Page, json_option, topology_option
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.spec import FabricSpec


@click.command("model")
@click.argument("names", metavar="DRILL | RUN...", nargs=-1, required=True, shell_complete=drill_names)
@topology_option
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=1,
    show_default=True,
    help="Of what failovers are drawn to take.",
)
@click.option(
    "--times",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Measured times to draw from, or with --calibrate to write; default: those that come with hpn.",
)
@click.option(
    "--calibrate", is_flag=True, help="Take the times of failovers from these run folders, and write --times."
)
@json_option
def model_(
    names: tuple[str, ...],
    topology: FabricSpec | None,
    seed: int,
    times: Path | None,
    calibrate: bool,
    as_json: bool,
) -> int:
    """Answer DRILL by arithmetic: no lab, no packets, at sizes that no machine could emulate.

    Flows share links as constant-rate streams do; switches and LAGs hash as in the lab, so every flow takes the links
    it would take there. Where a fault sends them follows from BGP and path control; how long that takes is drawn from
    runs of the lab, which are named. What the drill expects is judged where it means something, the rest is listed
    as not modelled. Every figure is modelled, none is measured. Streams take seconds, a job up to minutes: 0.2 ms of
    CPU a message, and every 30 s a line on standard error says how far it is. Exit code: as of hpn drill run; 2 for
    a drill that only a lab can answer.
    """
    if calibrate:
        return _calibrate([Path(name) for name in names], times, Page(as_json))
    if len(names) > 1:
        raise InputError(f"one drill at a time, not {len(names)}; with --calibrate these are run folders")
    from hpn.commands.waiting import say, share_done
    from hpn.scenarios.drill import catalogue
    from hpn.scenarios.drill.planned import PlannedRun
    from hpn.scenarios.model.answer import messages_of, model
    from hpn.scenarios.model.failover_times import load, shipped
    from hpn.scenarios.model.page import document, page
    from hpn.testbed.lab.service.preflight import available_memory

    drawn_from = shipped() if times is None else load(times)
    planned = PlannedRun(catalogue.load(names[0], topology))
    name = planned.drill.name
    say(_estimate(name, messages_of(planned)))
    answer = model(planned, drawn_from, seed, available_memory() or float("inf"), share_done(f"model of {name}"))
    out = Page(as_json)
    out.show(page(answer))
    out.end(lambda: document(answer))
    return answer.verdict.exit_code


def _estimate(name: str, messages: float) -> str:
    """Return how long the model of a job takes, before it starts; '' if not worth showing."""
    from hpn.scenarios.model.jobs import SECONDS_A_MESSAGE
    from hpn.scenarios.run.estimate import WORTH_TELLING_S, in_words

    seconds = messages * SECONDS_A_MESSAGE
    if seconds <= WORTH_TELLING_S:
        return ""
    return f"the model of {name} takes up to about {in_words(seconds)} ({messages:,.0f} messages)"


def _calibrate(folders: list[Path], times: Path | None, out: Page) -> int:
    """Write the failover times of these runs."""
    from hpn.scenarios.model.calibrating import measured_in
    from hpn.scenarios.model.failover_times import text_of
    from hpn.scenarios.model.page import measured_document, measured_table

    if times is None:
        raise InputError("say where the times go: hpn model --calibrate RUN... --times FILE")
    found = measured_in(folders)
    write(times, text_of(found), "--times")
    out.show(measured_table(found))
    out.tell(f"written to {times}")
    out.end(lambda: measured_document(found))
    tell_next("model", quiet=out.as_json, times=times)
    return 0
