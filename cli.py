"""The ``hpn`` command: parse, call one function, print. No logic lives here."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until ``main`` runs, Ctrl-C just ends this process: no traceback

import io
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from pydantic_core import to_json
from rich.console import Console, RenderableType

from results.ci import ci_document, ci_table, grouped
from results.ci import exit_code as ci_exit_code
from results.compare import compare, spread_table
from results.engines import Difference, engine_tables, side_by_side
from results.ground_truth import ground_truth_table, paused_table
from results.junit import Judged, junit_xml
from results.junit import check_place as check_junit
from results.run.folder import RunFolder, prepare, run_document
from results.run.folder import load as load_run
from results.text.live import LiveSteps, LiveUp, LiveView
from results.text.tables import (
    calibration_line,
    change_lines,
    doctor_table,
    figure_line,
    inventory_tables,
    rows_table,
    table,
)
from results.text.terminal import summary
from results.verdict import Outcome, worst_exit_code
from scenarios.bench import figures
from scenarios.campaign import campaign as campaigns
from scenarios.campaign import report as campaign_report
from scenarios.campaign.journal import load as load_campaign
from scenarios.campaign.pools import pool_for
from scenarios.drill import catalogue
from scenarios.drill.describe import describe
from scenarios.paper import reproduce
from scenarios.run import calibrate, engines, repeats, session
from scenarios.run.order import Batch, Order
from scenarios.selftest import start
from scenarios.suite import schedule
from scenarios.suite import slots as engine_slots
from scenarios.suite.suite import load_suite
from testbed.doctor import examine
from testbed.errors import HpnError, InputError, MachineError, NoisyError
from testbed.fabric.inventory import inventory
from testbed.fabric.load import load_fabric
from testbed.fabric.presets import PRESETS
from testbed.lab.service import attach, control, registry, supervisor
from testbed.lab.service.inspect import SECTIONS
from testbed.vm import kernel_build, repeatable
from testbed.vm import shell as guest_shell
from testbed.vm.doctor import examine as examine_guests
from testbed.vm.standstill import STALL_S, STALL_VARIABLE

_SIGPIPE = 128 + signal.SIGPIPE  # what a shell reports of a program whose reader went away; no answer of a drill


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hpn")
def commands() -> None:
    """A failover testbed for AI training networks.

    Builds a scaled-down HPN (non-stacked dual-ToR LACP, dual plane, rails) in Linux namespaces, breaks it under
    RoCE-like load and measures the failover. Start with: hpn drill run link-down

    Exit codes: 0 pass, 1 fail, 2 usage or file error, 3 this machine cannot run it, 4 inconclusive (too noisy).
    """


def main() -> None:
    """Run the command line: the product's own errors become one line each and their exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    repeatable.begin()
    _open_standard_streams()
    stdout = sys.stdout
    try:
        code = commands.main(prog_name="hpn", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = 130
    except HpnError as error:
        for line in str(error).splitlines():
            click.echo(f"hpn: {line}", err=True)
        code = error.exit_code
    except BrokenPipeError:
        _drop_output()
        code = _SIGPIPE
    except SystemExit as leave:
        # A closed pipe: rich ends so, and click, which puts something in the place of the stream.
        if not isinstance(leave.__context__, BrokenPipeError) and sys.stdout is stdout:
            raise
        _drop_output()
        code = _SIGPIPE
    except OSError as error:  # a full disk, a folder of somebody else, a working directory that is gone
        where = f" ({error.filename})" if error.filename else ""
        click.echo(f"hpn: {error.strerror or error}{where}; check disk, path and permissions", err=True)
        code = MachineError.exit_code
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
    except Exception:  # noqa: BLE001  # Python would end with 1, which says that the network failed
        traceback.print_exc()
        click.echo("hpn: this is a mistake of hpn itself, and says nothing of the network; please report it", err=True)
        code = MachineError.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def _open_standard_streams() -> None:
    """Give /dev/null to streams that the caller closed (``>&-``): no file of ours may get their numbers.

    What the others cannot encode, they escape: a name from a drill file ends no command.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  # for as long as we run
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What cannot be written is not tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@commands.command()
@click.argument("topology", default="tiny")
@click.option("--json", "as_json", is_flag=True, help="Print the inventory as JSON.")
def plan(topology: str, as_json: bool) -> None:
    """Print the inventory of a preset or topology file, at any size; nothing is built."""
    found = inventory(load_fabric(topology))
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2))
    else:
        show(*inventory_tables(found))


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def presets(as_json: bool) -> None:
    """List the named topologies."""
    if as_json:
        click.echo(json.dumps([{"name": p.name, "summary": p.summary} for p in PRESETS.values()], indent=2))
        return
    show(table("presets", ("name", "what it is good for"), ((p.name, p.summary) for p in PRESETS.values())))


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
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
    return MachineError.exit_code if any(c.needed and not c.present for c in found) else 0


@commands.command()
@click.argument("topology", default="tiny")
@click.option("--name", help="Name of the lab; default: the topology's.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def up(topology: str, name: str | None, quiet: bool) -> None:
    """Start a lab of a preset or topology file and return when it is converged."""
    fabric = load_fabric(topology)
    started = time.monotonic()
    request = supervisor.Request(name or fabric.spec.name, topology, fabric)
    with LiveUp(Console(stderr=True, quiet=quiet), request.name, fabric) as listen:
        launched = supervisor.launch(request, listen, on_up=_see_it_through)
    if not quiet:
        click.echo(
            f"lab {launched.name}: {launched.nodes} nodes, {launched.links} links, LAG datapath {launched.datapath},"
            f" converged after {time.monotonic() - started:.2f} s"
        )


def _see_it_through() -> None:
    """Ignore what would end the command: its lab stays up from here on, so its exit code must say so."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@commands.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="End every lab of yours.")
def down(name: str | None, everything: bool) -> None:
    """End a lab and verify that nothing is left of it; ending one that is not up is no error."""
    labs = list(registry.everything())
    if name is not None:
        registry.check_name(name)
        labs = [found for found in labs if found[1].name == name]
    elif not everything and len(labs) > 1:
        raise InputError(f"which lab? hpn down NAME, or --all; there are: {', '.join(r.name for _, r in labs)}")
    for place, record in labs:
        supervisor.stop(place)
        click.echo(f"lab {record.name} is down")
    if not labs:
        click.echo("no lab is up" if name is None else f"lab {name} is not up")


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def ls(as_json: bool) -> None:
    """List your labs: starting, up, ending, or died with last words."""
    records = [record for _, record in registry.everything()]
    if as_json:
        click.echo(json.dumps([asdict(record) for record in records], indent=2))
        return
    columns = ("name", "state", "topology", ">nodes", ">links", "datapath", ">process", ">age")
    rows = (
        (r.name, r.state, r.topology, r.nodes, r.links, r.datapath, r.first_pid, f"{time.time() - r.started_at:.0f} s")
        for r in records
    )
    show(table("labs", columns, rows))
    for record in records:
        if record.reason:
            click.echo(f"{record.name}: {record.reason}")


def _set_stall_limit(_context: click.Context, _option: click.Parameter, seconds: float | None) -> None:
    """Every guest that this command or one that it starts boots is told by the environment."""
    if seconds is not None:
        os.environ[STALL_VARIABLE] = f"{seconds:g}"


stall_limit_option = click.option(
    "--stall-limit",
    type=click.FloatRange(1, 86_400),
    metavar="SECONDS",
    expose_value=False,
    callback=_set_stall_limit,
    help=f"End a guest whose clock stands for so long. Default: {STALL_S:g}, or {STALL_VARIABLE}.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document; progress goes to stderr.")
lab_option = click.option("--lab", "lab_name", help="Which lab; not needed when only one is up.")


@commands.command()
@click.argument("what", required=False, type=click.Choice(list(SECTIONS)))
@lab_option
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def inspect(what: str | None, lab_name: str | None, as_json: bool) -> None:
    """Show nodes, links, LACP, BGP sessions, routes and ECMP groups of a lab as they are now."""
    place, _ = registry.find(lab_name)
    found = control.call(place.socket, "inspect", what=what or "")
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        sections = {what: found} if what else found
        assert isinstance(sections, dict)
        show(*(rows_table(name, rows) for name, rows in sections.items()))


@commands.command(context_settings={"ignore_unknown_options": True})
@click.argument("node")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
@lab_option
def exec(node: str, command: tuple[str, ...], lab_name: str | None) -> int:
    """Run a command in a node of a lab: hpn exec p0.s0.h0 -- ping -c 3 10.0.1.1"""
    place, record = registry.find(lab_name)
    return attach.execute(record.first_pid, registry.fabric_of(place), node, command)


@commands.command()
@click.argument("node", required=False)
@lab_option
@click.option("--script", type=click.Path(exists=True, dir_okay=False), help="Run these commands instead of asking.")
def shell(node: str | None, lab_name: str | None, script: str | None) -> int:
    """Open Mininet's CLI on a lab, or a shell in one of its nodes."""
    place, record = registry.find(lab_name)
    fabric = registry.fabric_of(place)
    if node is not None:
        return attach.execute(record.first_pid, fabric, node, [os.environ.get("SHELL") or "/bin/sh"])
    return attach.shell(record.first_pid, fabric, sys.stdin, script)


@commands.command()
@click.argument("src")
@click.argument("dst")
@click.option("--sport", type=click.IntRange(1, 65535), required=True, help="UDP source port.")
@click.option("--dport", type=click.IntRange(1, 65535), default=4791, show_default=True, help="UDP destination port.")
@lab_option
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def trace(src: str, dst: str, sport: int, dport: int, lab_name: str | None, as_json: bool) -> int:
    """Show the exact path a flow takes now, from NIC SRC to NIC DST (such as p0.s0.h0.r0): asked of the kernel."""
    place, _ = registry.find(lab_name)
    found = control.call(place.socket, "trace", src=src, dst=dst, sport=sport, dport=dport)
    assert isinstance(found, dict)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        show(rows_table(f"{src} to {dst}, source port {sport}", found["steps"]))
        click.echo(f"dropped: {found['dropped']}" if found["dropped"] else "delivered")
    return 1 if found["dropped"] else 0


@commands.command("break")
@click.argument("target")
@lab_option
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def break_(target: str, lab_name: str | None, as_json: bool) -> None:
    """Break a part of a lab by hand, until: hpn mend.

    A link (p0.s0.h0.r0.0, p0.s0.t0.0-p0.a0.0) or every port of a NIC (p0.s0.h0.r0) or host (p0.s0.h0) loses carrier;
    a ToR (p0.s0.t0.0), Agg (p0.a0.0) or Core (c0.0) crashes. Names: hpn inspect nodes, hpn inspect links.
    """
    place, _ = registry.find(lab_name)
    show_change(control.call(place.socket, "break", target=target), "down", as_json)


@commands.command()
@click.argument("target")
@lab_option
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def mend(target: str, lab_name: str | None, as_json: bool) -> None:
    """Undo: hpn break TARGET. What else is broken, a link of that host for instance, stays so."""
    place, _ = registry.find(lab_name)
    show_change(control.call(place.socket, "mend", target=target), "up", as_json)


@commands.command()
@lab_option
def events(lab_name: str | None) -> None:
    """Follow the timeline of a lab as JSON lines until Ctrl-C."""
    place, _ = registry.find(lab_name)
    control.call(place.socket, "events", on_event=lambda event: click.echo(json.dumps(event)))


@commands.group()
def drill() -> None:
    """Scripted failure drills: list, read, check and run them."""


@drill.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def drill_ls(as_json: bool) -> None:
    """List the drills that come with hpn."""
    if as_json:
        click.echo(json.dumps([{"name": d.name, "summary": d.summary} for d in catalogue.ls()], indent=2))
        return
    show(table("drills", ("name", "what happens"), ((d.name, d.summary) for d in catalogue.ls())))


@drill.command("show")
@click.argument("name")
def drill_show(name: str) -> None:
    """Explain a drill: what happens in hardware, what is emulated, its timeline and expectations."""
    for line in describe(catalogue.load(name)):
        click.echo(line)


@drill.command("validate")
@click.argument("names", nargs=-1, required=True)
def drill_validate(names: tuple[str, ...]) -> None:
    """Check drill files: every mistake at once, with file and line."""
    problems: list[str] = []
    for name in names:
        try:
            catalogue.load(name)
            click.echo(f"{name}: good")
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems)


@drill.command("run")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every drill that comes with hpn.")
@click.option("--engine", type=click.Choice(["host", "qemu", "uml"]), default="host", show_default=True, help="Where.")
@click.option("--virtual-time", is_flag=True, help="With --engine uml: a clock that CPU load cannot touch.")
@stall_limit_option
@click.option(
    "--slow", type=click.IntRange(1, 100), help="Divide the traffic by this; default: 10 in UML, 40 in emulated QEMU."
)
@click.option("--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Runs of each drill.")
@click.option(
    "--phase",
    type=click.IntRange(1, 10**6),
    default=1,
    show_default=True,
    help="Number of the first run: faults fall into the protocols' timers, and seeds are, as drawn from it.",
)
@click.option(
    "--tries", type=click.IntRange(1, 20), default=1, show_default=True, help="Of a run, while it cannot be trusted."
)
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit report here.")
@click.option("--keep-records", is_flag=True, help="Keep every packet's record, compressed, for: hpn analyse")
@json_option
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for run folders; default: runs/TIME."
)
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), hidden=True)  # inside a guest
@click.option("--as-engine", default="host", hidden=True)
@click.option("--as-repeat", type=int, default=0, hidden=True)  # one of a series that another command makes
def drill_run(
    names: tuple[str, ...],
    everything: bool,
    engine: str,
    virtual_time: bool,
    slow: int | None,
    repeat: int,
    phase: int,
    tries: int,
    junit: Path | None,
    keep_records: bool,
    as_json: bool,
    out: Path | None,
    folder: Path | None,
    as_engine: str,
    as_repeat: int,
) -> int:
    """Run drills, each in a lab of its own, and judge them. The exit code is the worst answer."""
    wanted = engine_name(engine, virtual_time)
    if everything == bool(names):
        raise InputError("name the drills to run, or say --all; hpn drill ls lists those that come with hpn")
    drills = [catalogue.load(name) for name in names or [each.name for each in catalogue.ls()]]
    if slow:
        drills = [chosen.slowed(slow) for chosen in drills]
    if junit is not None:
        check_junit(junit)
    page = Page(as_json)
    if folder is not None:  # inside a guest: news as lines; the outside reads the run folder and prints it
        order = Order(
            drills[0], folder, tuple(sys.argv[1:]), as_repeat, as_engine, keep_records=keep_records, phase=phase
        )
        with LiveView(page.console, order.title) as listen:
            return session.run(order, listen).verdict().exit_code
    if not as_repeat:
        repeats.check(drills, repeat)
    if engine == "host":
        budget = calibrate.load()
        for chosen in drills:
            calibrate.check(chosen, budget)
    out = out or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
    batch = Batch(drills, repeat, out, tuple(sys.argv[1:]), slow, tries, keep_records, phase)
    guest = engines.ENGINES[wanted]() if wanted != engines.HOST else None
    runs: list[RunFolder] = []
    refused: MachineError | NoisyError | None = None
    try:
        watched = engines.run_batch(batch, guest, lambda title: LiveView(page.console, title), page.tell)
        for order, run in watched:
            if isinstance(run, MachineError | NoisyError):
                refused = run if refused is None or isinstance(run, MachineError) else refused
                click.echo(f"hpn: {order.drill.name}: {run}", err=True)
                continue
            runs.append(run)
            page.console.print(summary(run.manifest(), run.metrics(), run.verdict()))
            page.console.print(f"run folder: {run.path}\n", soft_wrap=True)
    finally:
        repeated = repeats.judge(batch, runs)
        if junit is not None:
            junit.write_text(junit_xml((Judged(run.manifest(), run.verdict()) for run in runs), repeated))
    if repeat > 1:
        page.show(*(spread_table(compare([run.metrics() for run in found])) for found in batch.by_drill(runs)))
        page.show(*repeats.summaries(repeated))
    page.end(lambda: {"runs": [run_document(run) for run in runs], "repeats": repeated})
    code = worst_exit_code([each.verdict for each in repeated] or [run.verdict() for run in runs])
    return refused.exit_code if refused is not None and code != Outcome.FAIL.exit_code else code


@commands.command("analyse")
@click.argument("run", type=click.Path(file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write metrics and verdict anew here.")
@json_option
def analyse_(run: Path, out: Path | None, as_json: bool) -> int:
    """Make metrics and verdict of a run folder anew, from what --keep-records kept in it.

    The exit code is the verdict's; 2 when the folder holds other metrics or another verdict than its records give,
    unless --out takes the new ones.
    """
    from scenarios.run.analyse import analyse  # numpy, which a drill loads after its measurement only

    page, found = Page(as_json), analyse(load_run(run))
    page.show(summary(found.manifest, found.metrics, found.verdict))
    page.tell(f"measured with hpn {found.measured_by}, analysed with hpn {found.analysed_by}")
    for line in found.differences:
        page.tell(f"differs: {line}")
    page.end(lambda: run_document(found.run, found.files) | {"differences": found.differences})
    if out is not None:
        page.tell(f"run folder: {found.write(out).path}")
    elif found.differences:
        raise InputError(f"{run} does not follow from its own records; --out DIR writes what does")
    else:
        page.tell(f"{', '.join(found.files)}: equal to those of the run, byte for byte")
    return found.verdict.exit_code


@commands.command()
@click.option("--engine", type=click.Choice(["host", "uml"]), default="host", show_default=True, help="Where.")
@click.option("--virtual-time", is_flag=True, help="With --engine uml: a clock that CPU load cannot touch.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), hidden=True)  # inside a guest
@click.option("--as-engine", default="host", hidden=True)
def selftest(engine: str, virtual_time: bool, as_json: bool, folder: Path | None, as_engine: str) -> int:
    """Inject outages of exactly known length and check that what is measured of them is true."""
    if folder is not None:
        return start.run_here(as_engine, folder).outcome.exit_code
    page = Page(as_json)
    found = start.run(engine_name(engine, virtual_time), page.tell)
    page.show(ground_truth_table(found), paused_table(found))
    for reason in found.reasons():
        page.tell(reason)
    page.tell(found.outcome)
    page.end(lambda: json.loads(found.to_json()))
    return found.outcome.exit_code


@commands.group()
def ci() -> None:
    """Suites of drills for continuous integration: one report, one exit code."""


@ci.command("run")
@click.argument("suite", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("ci-out"), show_default=True)
@click.option("--jobs", type=click.IntRange(1, 256), help="Runs side by side; default: the suite's, or one per core.")
@json_option
def ci_run_(suite: Path, out: Path, jobs: int | None, as_json: bool) -> int:
    """Run every drill of a suite file on its engines, go on after failures, write OUT/junit.xml and OUT/summary.md.

    A run on the host or in QEMU has the machine to itself; guests with virtual time disturb nobody.
    """
    page, wanted = Page(as_json), load_suite(suite, engines.NAMES)
    prepare(out)
    runs = []
    try:
        started = schedule.run_suite(
            wanted, engine_slots.slots(), out, lambda run: page.tell(f"starting {run.title}"), jobs=jobs
        )
        for run in started:
            runs.append(run)
            page.tell(f"{run.answer}: {run.title} ({run.wall_s:.0f} s) {run.reason}".rstrip())
    finally:
        groups = grouped(schedule.in_order(wanted, runs))
        schedule.write_reports(out, wanted, groups)
    page.show(ci_table(groups))
    page.end(lambda: ci_document(groups))
    return ci_exit_code(groups)


@drill.command("compare")
@click.argument("name")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for run folders.")
@json_option
def drill_compare(name: str, out: Path | None, as_json: bool) -> int:
    """Run one drill on the host, in QEMU, in UML and in virtual time; put the failover times side by side."""
    place = out or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
    page, runs = Page(as_json), []
    for engine, found in engines.run_everywhere(catalogue.load(name), place, tuple(sys.argv[1:]), page.tell):
        if isinstance(found, MachineError | NoisyError):
            click.echo(f"left out: {engine}: {found}", err=True)
            continue
        runs.append(found)
        page.show(summary(found.manifest(), found.metrics(), found.verdict()))
    if not runs:
        raise MachineError("no engine could run it; hpn doctor says what is missing")
    differences = side_by_side([(run.manifest(), run.metrics()) for run in runs])
    page.show(*engine_tables(differences))
    page.end(lambda: {"runs": [run_document(run) for run in runs], "differences": differences})
    return worst_exit_code(run.verdict() for run in runs)


@commands.command("compare")
@click.argument("folders", nargs=-1, required=True, type=click.Path(file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def compare_engines(folders: tuple[Path, ...], as_json: bool) -> None:
    """Put run folders of one drill on several engines side by side, with the reason for each difference."""
    found = [load_run(folder) for folder in folders]
    show_differences(side_by_side([(run.manifest(), run.metrics()) for run in found]), as_json)


@commands.group()
def campaign() -> None:
    """Random sequences of faults, invariants checked after each; what breaks becomes the smallest drill file."""


@campaign.command("run")
@click.argument("topology", default="tiny")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help="Draws the sequences.")
@click.option(
    "--sequences", type=click.IntRange(1, 10**6), default=200, show_default=True, help="How many, over all runs."
)
@click.option("--jobs", type=click.IntRange(1, 256), help="Labs side by side; default: one per core.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("campaign-out"), show_default=True
)
@click.option("--engine", type=click.Choice(["host", "uml"]), default="host", show_default=True, help="Where labs run.")
@click.option("--virtual-time", is_flag=True, help="With --engine uml: a clock that CPU load cannot touch.")
@click.option("--scheduler", metavar="ADDRESS", help="Run on the workers of this dask scheduler instead.")
@click.option(
    "--long-faults",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="So many of the faults last 4 to 15 s, past LACP's and BGP's timers; default: 25 in virtual time, else 0.",
)
@stall_limit_option
@json_option
def campaign_run(
    topology: str,
    seed: int,
    sequences: int,
    jobs: int | None,
    out: Path,
    engine: str,
    virtual_time: bool,
    scheduler: str | None,
    long_faults: float | None,
    as_json: bool,
) -> int:
    """Run a campaign, or go on with the one in the --out folder, and shrink what it breaks."""
    page, where = Page(as_json), engine_name(engine, virtual_time)
    share = None if long_faults is None else long_faults / 100
    plan = campaigns.plan_for(out, seed, load_fabric(topology).spec, where, share)
    for entry in campaigns.carry_out(out, plan, sequences, pool_for(plan.engine, out, jobs, scheduler)):
        page.tell(campaign_report.line(entry))
    kept, done = load_campaign(out)
    page.show(*campaign_report.tables(kept, done))
    page.end(lambda: campaign_report.overview(kept, done))
    return campaign_report.exit_code(done)


@campaign.command("show")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def campaign_show(folder: Path, as_json: bool) -> None:
    """Show what a campaign has found so far, also while it runs."""
    if as_json:
        click.echo(json.dumps(campaign_report.overview(*load_campaign(folder)), indent=2))
        return
    show(*campaign_report.tables(*load_campaign(folder)))


@commands.command("reproduce")
@click.argument("claims", nargs=-1)
@click.option("--engine", type=click.Choice(engines.NAMES), help="Default: virtual time where it can run, else host.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for run folders and tables.")
@json_option
def reproduce_(claims: tuple[str, ...], engine: str | None, out: Path | None, as_json: bool) -> int:
    """Hold the HPN paper's claims, or just CLAIMS, against runs made now (all of them: some 10 to 15 minutes).

    Each is also held against networks without what it is about, where it must not hold. Exit code 1: a claim differs
    and nobody knew, holds without its feature too, or a drill failed; 4: one could not be judged; else 0.
    """
    place = out or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
    chosen = reproduce.choose(claims)
    where = engine or reproduce.default_engine()
    prepare(place)
    page = Page(as_json)
    rows = reproduce.reproduce(chosen, where, place, tuple(sys.argv[1:]), page.tell)
    page.show(reproduce.claims_table(rows))
    page.tell(f"written to {place / reproduce.MARKDOWN} and {reproduce.JSON}")
    page.end(lambda: reproduce.document(rows, where))
    return reproduce.exit_code(rows)


@commands.group()
def vm() -> None:
    """Guest kernels for drills: --engine qemu, --engine uml."""


@vm.command("build-kernel")
@click.option("--source", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A linux-source tar file.")
def vm_build_kernel(source: Path | None) -> None:
    """Build the user-mode-linux kernel that --virtual-time needs, into the cache (3 to 5 minutes, once)."""
    with LiveSteps(terminal()) as listen:
        built = kernel_build.build(listen, source)
    click.echo(f"user-mode-linux {built.release} is in the cache as {built.key}")


@vm.command("shell", context_settings={"allow_interspersed_args": False})
@click.option("--engine", type=click.Choice(guest_shell.ENGINES), help="Default: uml where it can run, else qemu.")
@click.option("--virtual-time", is_flag=True, help="With uml and a command: a clock that CPU load cannot touch.")
@stall_limit_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def vm_shell(engine: str | None, virtual_time: bool, command: tuple[str, ...]) -> int:
    """Work in a guest kernel: a shell there, or one command: hpn vm shell -- sh -c 'hpn up tiny && hpn inspect'"""
    return guest_shell.run(command, engine, virtual_time, click.echo)


@commands.command()
@click.option("--runs", type=click.IntRange(1, 100), default=3, show_default=True, help="Repeats; medians are shown.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def bench(runs: int, as_json: bool) -> int:
    """Measure the speeds this project claims, beside stock Mininet where it is installed."""
    found = []
    for figure in figures.everything(runs):
        found.append(figure)
        if not as_json:
            click.echo(figure_line(figure))
    if as_json:
        click.echo(json.dumps([asdict(figure) | {"met": figure.met} for figure in found], indent=2))
    return 1 if any(figure.met is False for figure in found) else 0


def show_differences(found: Sequence[Difference], as_json: bool) -> None:
    """Engines side by side."""
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
    else:
        show(*engine_tables(found))


def show_change(change: control.JsonValue, direction: str, as_json: bool) -> None:
    """What a break (direction 'down') or a mend ('up') changed."""
    if as_json:
        click.echo(json.dumps(change, indent=2))
    elif isinstance(change, dict):
        for line in change_lines(change, direction):
            click.echo(line)


def engine_name(engine: str, virtual_time: bool) -> str:
    """The engine that --engine and --virtual-time ask for. InputError when they do not fit together."""
    if not virtual_time:
        return engine
    if engine != "uml":
        raise InputError("--virtual-time needs --engine uml")
    return "uml-virtual-time"


@dataclass(frozen=True)
class Page:
    """Where a command that takes its time prints: with --json one document on stdout, news on stderr."""

    as_json: bool

    @property
    def console(self) -> Console:
        """For news that are more than a line."""
        return terminal(stderr=self.as_json)

    def tell(self, line: str) -> None:
        """Print one line of news."""
        click.echo(line, err=self.as_json)

    def show(self, *renderables: RenderableType) -> None:
        """Print the answer as tables, without --json."""
        if not self.as_json:
            show(*renderables)

    def end(self, document: Callable[[], object]) -> None:
        """Print the answer as JSON, with --json; what is no number in JSON (infinity) is null."""
        if self.as_json:
            click.echo(to_json(document(), indent=2, inf_nan_mode="null"))


def terminal(stderr: bool = False) -> Console:
    """Where to print: as wide as the terminal or COLUMNS say, else 160; brackets are brackets, never markup."""
    wide = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ
    return Console(stderr=stderr, width=None if wide else 160, markup=False, emoji=False, highlight=False)


def show(*renderables: RenderableType) -> None:
    """Print tables, a blank line between them."""
    console = terminal()
    for renderable in renderables:
        console.print(renderable)
        console.print()


if __name__ == "__main__":
    main()
