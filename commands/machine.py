"""Capabilities and performance of this machine: doctor, bench, self-test, guests."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from hpn.commands.engine_option import OneOf, engine_option, virtual_time_option
from hpn.commands.followers import tell_next
from hpn.commands.page import Page, as_json_option, show, stall_limit_option, terminal
from hpn.results.judge.ground_truth import ground_truth_table, paused_table
from hpn.results.text.live import LiveSteps
from hpn.results.text.tables import (
    calibration_line,
    doctor_table,
    figure_line,
    kernels_table,
)
from hpn.scenarios.run import calibrate
from hpn.scenarios.selfcheck.bench import figures, virtual
from hpn.scenarios.selfcheck.selftest import start
from hpn.testbed.doctor import examine
from hpn.testbed.errors import MachineError, NoisyError
from hpn.testbed.vm import kernel_build, kernel_list
from hpn.testbed.vm import shell as guest_shell
from hpn.testbed.vm.doctor import examine as examine_guests
from hpn.testbed.vm.engines import asked_for

_REPEATS = click.IntRange(1, 100)
_FIRST = "link-down"
"""Drill suggested to new users."""


@click.command()
@as_json_option
@click.option("--engines", "boot", is_flag=True, help="Boot a guest with each engine to see (half a minute).")
@click.option("--calibrate", "measure", is_flag=True, help="Measure the packet budget and noise floor (half a minute).")
def doctor(as_json: bool, boot: bool, measure: bool) -> int:
    """Say what this machine can do, what is used instead, and what would provide it."""
    found = [*examine(), *examine_guests(boot=boot)]
    if measure:
        page, steps = Page(as_json), []
        for step in calibrate.calibrate():
            steps.append(step)
            page.tell(calibration_line(step))
        calibrate.save(calibrate.result(steps))
        page.end(lambda: steps)
        return 0 if steps[0].clean else NoisyError.exit_code
    if as_json:
        click.echo(json.dumps([asdict(capability) for capability in found], indent=2))
    else:
        show(doctor_table(found))
    lacking = any(c.needed and not c.present for c in found)
    tell_next("doctor", quiet=as_json or lacking, drill=_FIRST)
    return MachineError.exit_code if lacking else 0


@click.command()
@click.option("--repeat", type=_REPEATS, default=3, show_default=True, help="Measure so often; medians are shown.")
@click.option("--runs", "repeat_as_before", type=_REPEATS, hidden=True)  # the old name of --repeat
@click.option("--virtual-time", is_flag=True, help="Only a virtual second, by hosts, packets, clients and kernel.")
@as_json_option
def bench(repeat: int, repeat_as_before: int | None, virtual_time: bool, as_json: bool) -> int:
    """Measure the speeds this project claims, beside stock Mininet where it is installed."""
    found = []
    for figure in virtual.table() if virtual_time else figures.everything(repeat_as_before or repeat):
        found.append(figure)
        if not as_json:
            click.echo(figure_line(figure))
    if as_json:
        click.echo(json.dumps([asdict(figure) | {"met": figure.met} for figure in found], indent=2))
    return 1 if any(figure.met is False for figure in found) else 0


@click.command()
@engine_option("Where.", lambda spec: spec.selftest is not None)
@virtual_time_option
@as_json_option
def selftest(engine: str, virtual_time: bool, as_json: bool) -> int:
    """Inject outages of exactly known length and check that what is measured of them is true."""
    page = Page(as_json)
    found = start.run(asked_for(engine, virtual_time), page.tell)
    page.show(ground_truth_table(found), paused_table(found))
    for reason in found.reasons():
        page.tell(reason)
    page.tell(found.outcome)
    page.end(lambda: json.loads(found.to_json()))
    tell_next("selftest", quiet=as_json or found.outcome.exit_code != 0, drill=_FIRST)
    return found.outcome.exit_code


@click.group()
def vm() -> None:
    """Guest kernels for drills: --engine qemu, --engine uml."""


@vm.command("build-kernel")
@click.option("--source", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A linux-source tar file.")
@click.option("--later-suites", is_flag=True, help="Take a newer source from Debian's later suites, if there is one.")
def vm_build_kernel(source: Path | None, later_suites: bool) -> None:
    """Build the user-mode-linux kernel that virtual time needs, into the cache (4 to 6 minutes, once)."""
    page = terminal()
    with LiveSteps(page) as listen:
        built = kernel_build.build(
            listen, source, later_suites=later_suites, tell=lambda line: page.print(line, soft_wrap=True)
        )
    click.echo(f"user-mode-linux {built.release} is in the cache as {built.key}")
    tell_next("vm build-kernel", drill=_FIRST)


@vm.command("kernels")
@as_json_option
def vm_kernels(as_json: bool) -> None:
    """List the user-mode-linux kernels in the cache, and say whether apt offers a newer source."""
    found = kernel_list.entries()
    offered = kernel_list.offered()
    if as_json:
        click.echo(json.dumps({"kernels": [asdict(entry) for entry in found], "offered": asdict(offered)}, indent=2))
        return
    show(kernels_table(found))
    click.echo(offered.text)
    tell_next("vm kernels", quiet=bool(found))


@vm.command("shell", context_settings={"allow_interspersed_args": False})
@click.option("--engine", type=OneOf(guest_shell.words), help="Default: uml where it can run, else qemu.")
@virtual_time_option
@stall_limit_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def vm_shell(engine: str | None, virtual_time: bool, command: tuple[str, ...]) -> int:
    """Work in a guest kernel: a shell there, or one command: hpn vm shell -- sh -c 'hpn up tiny && hpn inspect'"""
    return guest_shell.run(command, engine, virtual_time, click.echo)
