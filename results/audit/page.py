"""Page of an audit: the answer, the fabric coloured by what each failure costs, and a row for each. Pure.

Changes when the page shows more of an audit. Texts come from run folders, which are untrusted: they are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from hpn.failover.analysis.dark import DarkNic, Way
from hpn.failover.analysis.phrases import many
from hpn.results.audit.model import ERROR, Answer, Row
from hpn.results.audit.text import CAPTION, COLUMNS, cells, notes, some
from hpn.results.graph.cost import Cost
from hpn.results.graph.grouping import Level
from hpn.results.graph.overlay import Overlay
from hpn.results.graph.svg import fabric_svg
from hpn.results.judge.verdict import Outcome
from hpn.results.page.listing import Cell, Choice, Filter, Link, Listing, Mark, href
from hpn.results.page.overview import MOST_ROWS, MOST_SECTIONS, Head, ManyView, Section, many_html
from hpn.results.text.checks import describe
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric

_MOST_NODES = 40
"""Maximum nodes drawn singly, as on the pages of runs."""
_OUTCOMES = (*map(str, Outcome), ERROR)
_QUESTION = "Does every promise hold when one element fails?"


def audit_page(answer: Answer, out: Path, place: Path) -> str:
    """Return the page for the file ``place`` of an audit whose run folders are below ``out``."""
    return many_html(audit_view(answer, out, place))


def audit_view(answer: Answer, out: Path, place: Path) -> ManyView:
    """Return the content of the page."""
    rows = answer.worst_first
    shown, told = rows[:MOST_ROWS], [row for row in rows if row.outcome != Outcome.PASS.value]
    kinds = [*dict.fromkeys(row.kind for row in answer.rows)]
    listing = Listing(
        f"In {CAPTION}",
        COLUMNS,
        [_row(row, out, place) for row in shown],
        [_classes(row, kinds) for row in shown],
    )
    return ManyView(
        head=_head(answer),
        overview=[_counts(answer, kinds)],
        runs_title="The failures, worst first",
        filters=tuple(_filters(answer, kinds)),
        runs=listing,
        runs_notes=[f"{len(rows) - len(shown)} rows more are in audit.json."] if len(rows) > len(shown) else [],
        common=[("engine", answer.engine), *(("promise", promise) for promise in answer.promises)],
        sections=[_section(row) for row in told[:MOST_SECTIONS]],
        left_out=_left_out(len(told) - MOST_SECTIONS),
        picture=picture(answer),
    )


def picture(answer: Answer) -> str:
    """Return the fabric as SVG, each part in the colour of what its worst failure costs."""
    fabric = build(answer.topology)
    level = None if len(fabric.nodes) <= _MOST_NODES else Level.SEGMENT
    return fabric_svg(fabric, Overlay(costs=costs_of(answer, fabric)), level)


def costs_of(answer: Answer, fabric: Fabric) -> Mapping[str, Cost]:
    """Return the cost of every node and link of the fabric, from single failures."""
    found: dict[str, Cost] = dict.fromkeys((*fabric.node_by_name, *fabric.link_by_name), Cost.UNKNOWN)
    for row in answer.rows:
        if len(row.targets) == 1 and row.targets[0] in found:
            found[row.targets[0]] = max(found[row.targets[0]], cost_of(row))
    return found


def cost_of(row: Row) -> Cost:
    """Return the cost of one failure."""
    if row.single_point:
        return Cost.SINGLE_POINT
    if row.outcome == Outcome.FAIL.value:
        return Cost.BROKEN
    if row.outcome != Outcome.PASS.value:
        return Cost.UNKNOWN
    lost = sum(moment.lost for moment in (row.failure, row.back) if moment is not None)
    return Cost.LOSS if lost else Cost.NOTHING


def _head(answer: Answer) -> Head:
    codes = {0: "pass", 1: "fail", 3: "could not run", 4: "inconclusive"}
    broken = [row for row in answer.worst_first if row.outcome == Outcome.FAIL.value]
    tried, points = many(len(answer.rows), "failure"), answer.single_points
    said = {
        0: f"Yes, in all of {tried}.",
        1: f"No: {len(broken)} of {tried} break a promise.",
        3: f"Nobody knows: {answer.count(ERROR)} of {tried} could not be run.",
        4: f"Nobody knows: {answer.count('inconclusive')} of {tried} are inconclusive.",
    }[answer.exit_code]
    alone = f" Single points: {len(points)}." if points else " No single point was found."
    waiting = [f"{many(answer.waiting, 'failure')} left; the same command goes on."] if answer.waiting else []
    lines = [f"{row.words}: {'; '.join(check.text for check in row.broken)}" for row in broken]
    return Head(
        f"audit of {answer.topology.name}",
        codes[answer.exit_code],
        _QUESTION,
        said + alone,
        lines,
        [*waiting, *notes(answer)],
    )


def _counts(answer: Answer, kinds: list[str]) -> Listing:
    rows = [
        (
            kind,
            *(str(sum(row.kind == kind and row.outcome == outcome for row in answer.rows)) for outcome in _OUTCOMES),
            str(sum(row.kind == kind and row.single_point for row in answer.rows)),
        )
        for kind in kinds
    ]
    columns = ("kind", *(f">{outcome}" for outcome in _OUTCOMES), ">single points")
    return Listing("Failures by kind", columns, rows, stacks=False)


def _row(row: Row, out: Path, place: Path) -> tuple[Cell, ...]:
    outcome, kind, element, *rest = cells(row)
    link = Link(element, href(out / row.run, place)) if row.run else element
    return (Mark(outcome), kind, link, *rest)


def _classes(row: Row, kinds: list[str]) -> str:
    """Return the classes of a row, none of which is a text of the file."""
    outcome = row.outcome if row.outcome in _OUTCOMES else ""
    return " ".join(filter(None, (outcome, f"k{kinds.index(row.kind)}", "single" if row.single_point else "")))


def _filters(answer: Answer, kinds: list[str]) -> Iterator[Filter]:
    outcomes = [outcome for outcome in _OUTCOMES if answer.count(outcome)]
    if len(outcomes) > 1:
        choices = (Choice(each, f"{each} ({answer.count(each)})") for each in outcomes)
        yield Filter("answer", (Choice("", "all"), *choices))
    if len(kinds) > 1:
        yield Filter("kind", (Choice("", "all"), *(Choice(f"k{at}", kind) for at, kind in enumerate(kinds))))
    if answer.single_points:
        yield Filter("cuts off", (Choice("", "all"), Choice("single", "single points")))


def _section(row: Row) -> Section:
    checks = [(Mark(check.outcome.value), check.text, describe(check)) for check in row.checks]
    tables = [Listing("Promises", ("", "promise", "measured"), checks, stacks=False)] if checks else []
    if row.failure is not None and row.failure.dark:
        dark = [_dark(each) for each in row.failure.dark]
        tables.append(Listing("Dark NICs", ("NIC", "what is lost", ">ms", "until the return"), dark, stacks=False))
    unfit = [f"Not judged: {text}: {reason}" for text, reason in row.unfit]
    alone = f"cuts off {some(row.cut_off)}" if row.cut_off else ""
    return Section(
        title=f"{row.kind} {row.element}",
        line="; ".join(filter(None, (row.outcome, alone))),
        open=False,
        tables=tables,
        lines=[*row.reasons, *unfit],
    )


def _dark(found: DarkNic) -> tuple[str, ...]:
    way = "all that it sends" if found.way is Way.UP else "all that is sent to it"
    return found.nic, way, f"{found.ms:,.1f}", "yes" if found.cut_off else "no"


def _left_out(count: int) -> str:
    return f"{count} failures more have no section here; each row links to its run." if count > 0 else ""
