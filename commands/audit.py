"""Audit of a fabric: every failure, one at a time.

Changes when the command takes another option. ``scenarios.audit`` plans and judges; ``commands.audit_runs`` makes runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hpn.commands.audit_runs import carried_out, listed, report_place
from hpn.commands.completing import topologies
from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.commands.page import Page, json_option
from hpn.commands.runs_options import runs_options
from hpn.commands.schemas import schema_text
from hpn.results.audit import comparison, text
from hpn.results.audit.junit import audit_junit
from hpn.results.audit.model import Answer
from hpn.results.audit.sarif import audit_sarif
from hpn.results.export.junit import check_place
from hpn.scenarios.audit.audit import Audit, plan
from hpn.scenarios.audit.base import topology_at
from hpn.scenarios.audit.failures import DEFAULT_KINDS, KINDS, PAIR
from hpn.scenarios.audit.promises import (
    DEFAULT,
    Promise,
    check_used,
    default_promises,
    load_promises,
    promises_schema,
)
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.versions import HPN
from hpn.testbed.vm.engines import asked_for

_FILE = click.Path(dir_okay=False, path_type=Path)
_BASE = "base"
"""Folder of the base's audit, below --out."""


def _print_schema(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(schema_text(promises_schema()), nl=False)
        context.exit()


def _print_default(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(DEFAULT, nl=False)
        context.exit()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """Options of ``hpn audit``, as given."""

    fabric: str
    promises: Path | None
    kinds: str
    elements: str
    pairs: int
    jobs: int | None
    engine: str
    scheduler: str | None
    out: Path
    only_list: bool
    junit: Path | None
    sarif: Path | None
    base: str | None
    as_json: bool

    @property
    def wanted_kinds(self) -> tuple[str, ...]:
        """Kinds of single failures. InputError for an unknown one."""
        words = tuple(word.strip() for word in self.kinds.split(",") if word.strip())
        for word in words:
            if word not in KINDS:
                raise InputError(f"--kinds {word}: no such kind; {did_you_mean(word, KINDS, 'kinds are')}")
        return words

    def planned(self, spec: FabricSpec, promises: tuple[Promise, ...], out: Path) -> Audit:
        """Return the audit of one fabric."""
        elements = tuple(word.strip() for word in self.elements.split(",") if word.strip())
        return plan(spec, self.wanted_kinds, self.pairs, promises, out, elements)


@click.command()
@click.argument("fabric", metavar="FABRIC", shell_complete=topologies)
@click.option("--promises", type=_FILE, metavar="FILE", help="What must hold; default: what --defaults prints.")
@click.option(
    "--defaults", is_flag=True, is_eager=True, expose_value=False, callback=_print_default, help="Print hpn's promises."
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of promise files, for editors.",
)
@click.option(
    "--kinds",
    metavar="KIND,...",
    default=",".join(DEFAULT_KINDS),
    show_default=True,
    help=f"What fails; also: {', '.join(kind for kind in KINDS if kind not in DEFAULT_KINDS)}.",
)
@click.option(
    "--elements", metavar="NAME,...", default="", help="Only failures of these; a name may have * and ?, as in 'leaf*'."
)
@click.option(
    "--pairs",
    type=click.IntRange(0, 100_000),
    default=0,
    show_default=True,
    help="Try so many pairs of links and switches too, those first that can leave a flow without a path.",
)
@click.option("--list", "only_list", is_flag=True, help="Print what would be tried and how long it takes; run nothing.")
@runs_options("audit-out")
@click.option("--junit", type=_FILE, help="Write a JUnit report here.")
@click.option("--sarif", type=_FILE, help="Write broken promises and single points as SARIF 2.1.0 here.")
@click.option("--base", metavar="COMMIT", help="Audit the topology file of that git commit too, and compare.")
@json_option
def audit(**given: Any) -> int:
    """Fail and restore every element of FABRIC, one at a time, and say what each costs, worst first.

    FABRIC is a preset or a topology file. Each failure is a drill of its own, with traffic within and between racks.
    A promise that breaks is exit code 1. With --base it is 1 only if a failure costs more than in that commit, or a
    new one breaks a promise. OUT/report.html has the fabric coloured by what each failure costs.

    \b
    hpn audit fabric.yaml --list
    hpn audit fabric.yaml --pairs 50 --junit junit.xml --sarif audit.sarif
    hpn audit fabric.yaml --base main
    """
    options, page = AuditOptions(**given), Page(bool(given["as_json"]))
    for option, path in (("--junit", options.junit), ("--sarif", options.sarif)):
        if path is not None:
            check_place(path, option)
    promises = default_promises() if options.promises is None else load_promises(options.promises)
    check_used(promises, (*options.wanted_kinds, *((PAIR,) if options.pairs else ())))
    planned = options.planned(load_topology(options.fabric), promises, options.out)
    base = None
    if options.base is not None:
        base = options.planned(topology_at(options.base, options.fabric), promises, options.out / _BASE)
    if options.only_list:
        listed([planned] if base is None else [base, planned], asked_for(options.engine, False), options.jobs, page)
        return 0
    return _run(options, planned, base, page)


def _run(options: AuditOptions, planned: Audit, base: Audit | None, page: Page) -> int:
    spec = asked_for(options.engine, False)
    before = None if base is None else carried_out(base, spec, options.jobs, options.scheduler, page)
    answer = carried_out(planned, spec, options.jobs, options.scheduler, page)
    if options.junit is not None:
        write(options.junit, audit_junit(answer), "--junit")
    if options.sarif is not None:
        write(options.sarif, audit_sarif(answer, options.fabric, HPN), "--sarif")
    page.show(text.audit_table(answer))
    _tell(page, [*text.lines(answer), f"page: {report_place(options.out)}"])
    if before is None:
        page.end(lambda: answer)
        tell_next("audit", quiet=options.as_json, run=_worst(answer, planned))
        return answer.exit_code
    changed = comparison.compare(before, answer)
    page.show(comparison.comparison_table(changed, text.MOST_ROWS))
    page.tell(comparison.comparison_line(changed))
    page.end(lambda: {"answer": answer, "base": before, "changed": changed})
    tell_next("audit", quiet=options.as_json, run=_worst(answer, planned))
    return comparison.comparison_exit_code(changed, answer)


def _tell(page: Page, lines: Sequence[str]) -> None:
    for line in lines:
        page.tell(line)


def _worst(answer: Answer, planned: Audit) -> Path | None:
    """Return the run folder of the most costly failure that is no pass."""
    worst = next(iter(answer.worst_first), None)
    return planned.out / worst.run if worst is not None and worst.run and worst.outcome != "pass" else None
