"""A run's page read from top to bottom by somebody who does not know hpn: order, words, and nothing that is empty."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.budget import Interval
from hpn.results.judge.verdict import at_least, decide, holds
from hpn.results.page.page import page
from hpn.results.page.sections import check_rows
from hpn.results.run.drill import PlannedMoment
from hpn.results.run.reading import Run, read
from tests.results.sample import metrics, verdict
from tests.results.test_page import run_of, seen
from tests.results.whole import DRILL, FABRIC, whole_run

_TAG = re.compile(r"<[^>]+>")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All parts; its edges are those of the fault that its drill has."""
    run = read(whole_run(tmp_path_factory.mktemp("reading") / "run").path)
    assert run.drill is not None
    return replace(run, drill=replace(run.drill, faults=(replace(run.drill.faults[0], id="link"),)))


def text_of(markup: str) -> str:
    """What a reader sees of it, in one line."""
    return " ".join(_TAG.sub("", markup).replace("&gt;", ">").replace("&lt;", "<").split())


def sections(markup: str) -> dict[str, str]:
    """The markup below each heading of the page, in order; '' is what stands above the first."""
    parts = re.split(r"<h2>(.*?)</h2>", markup.partition("<body>")[2])
    return {"": parts[0]} | {text_of(name): below for name, below in zip(parts[1::2], parts[2::2], strict=True)}


def test_what_the_fault_did_stands_above_what_the_machine_did_meanwhile(whole: Run) -> None:
    found = sections(page(whole))
    order = ["", "Expectations", "The fabric", "Over time", "The failure", "The repair", "The machine meanwhile"]
    assert list(found) == [*order, "On real hardware", "The run", "Glossary"]
    assert 'data-chart="host"' in found["The machine meanwhile"]
    assert "event loop" in text_of(found["The machine meanwhile"])
    assert not any('data-chart="host"' in found[name] for name in order[:-1])


def test_the_head_of_a_page_says_what_was_broken_in_words(whole: Run) -> None:
    head = text_of(sections(page(whole))[""])
    assert "Broken: link-down of p0.s0.h0.r0.0, the link from rail 0 of host 0 to its ToR of plane 0" in head
    assert "3.0 s after the traffic began, not repaired" in head
    assert "Did it? Yes" in head


def test_a_drill_without_a_fault_says_so() -> None:
    run = run_of(metrics(), drill=replace(DRILL, faults=()), fabric=FABRIC)
    assert "Broken: nothing: the drill has no fault." in text_of(page(run))


def test_every_link_of_a_page_leads_to_a_term_of_its_glossary(whole: Run) -> None:
    tags = seen(page(whole)).tags
    places = [of["id"] for _, of in tags if "id" in of]
    links = [(of["href"] or "").removeprefix("#") for tag, of in tags if tag == "a"]
    terms = [place for place in places if (place or "").startswith("term-")]
    assert len(places) == len(set(places))
    assert set(links) == set(terms)
    assert len(terms) > 20


def test_a_term_is_linked_at_its_first_use_in_each_section_and_nowhere_else(whole: Run) -> None:
    found = sections(page(whole))
    for name in ("The failure", "The repair"):
        links = re.findall(r'<a class="term" href="#(term-[\w-]+)">', found[name])
        assert len(links) == len(set(links))
        assert {"term-carrier", "term-injection"} <= set(links)


def test_the_first_flow_of_a_section_is_told_in_words(whole: Run) -> None:
    note = text_of(sections(page(whole))["The failure"])
    flow = "p0.s0.h0.r0>p0.s1.h0.r0#0"
    assert f"{flow} is queue pair 0 from rail 0 of host 0 in segment 0 to rail 0 of host 0 in segment 1." in note
    assert "p0.s0.h0.r0.0 is the link from rail 0 of host 0 to its ToR of plane 0 in segment 0." in note
    checks = text_of(sections(page(whole))["Expectations"])
    assert checks.index("is queue pair 0 from") < checks.index("worst outage at failure")


def test_the_repair_is_told_apart_from_its_failure(whole: Run) -> None:
    found = sections(page(whole))
    failure, repair = text_of(found["The failure"]), text_of(found["The repair"])
    assert "Failure of link: link-down of p0.s0.h0.r0.0" in failure
    assert "Repair of link: link-down of p0.s0.h0.r0.0" in repair
    assert "Repair of" not in failure
    assert "Failure of" not in repair
    assert "last flow recovered" in failure
    assert "last flow recovered" not in repair
    assert [name for name in found if "outage" in found[name]][-1] == "Glossary"


def test_failures_of_a_flap_come_first_then_its_repairs() -> None:
    found = metrics()
    edges = tuple(replace(each, edge=replace(each.edge, index=at // 2)) for at, each in enumerate(found.edges * 2))
    flows = tuple(replace(flow, edges=flow.edges * 2) for flow in found.flows)
    titles = re.findall("<h3>(.*?) of link</h3>", page(run_of(replace(found, edges=edges, flows=flows))))
    assert titles == ["Failure 0", "Failure 1", "Repair 0", "Repair 1"]


def test_a_step_of_a_fault_is_told_in_its_own_words() -> None:
    found = metrics()
    first, second = (replace(found.edges[0], edge=replace(found.edges[0].edge, index=at)) for at in (0, 1))
    moments = [PlannedMoment(at, "failure", at, what) for at, what in enumerate(("tor-drain t", "tor-leave t"))]
    fault = replace(DRILL.faults[0], id="link", moments=tuple(moments))
    flows = tuple(replace(flow, edges=flow.edges[:1] * 2) for flow in found.flows)
    drained = run_of(replace(found, edges=(first, second), flows=flows), drill=replace(DRILL, faults=(fault,)))
    titles = re.findall("<h3>(.*?)</h3>", page(drained))
    assert titles == [f"Failure 0 of link: {fault.kind} of {fault.target}", "Failure 1 of link: tor-leave t"]


def test_an_edge_that_took_nothing_is_a_sentence_and_no_table_of_zeros() -> None:
    found = sections(page(run_of(metrics())))
    assert "What it cost the streams" in found["The failure"]
    assert "What it cost the streams" not in found["The repair"]
    assert "no packet was lost. An outage of" in text_of(found["The repair"])


def test_no_table_of_a_page_is_without_rows() -> None:
    runs = (run_of(None), run_of(metrics()), run_of(None, decide([], ("the machine was full",))))
    for run in runs:
        markup = page(run)
        assert not re.search(r"<tbody>\s*</tbody>", markup)
        assert not re.search(r"<ul[^>]*>\s*</ul>", markup)
    assert "<h2>Expectations" not in page(runs[-1])


def test_evidence_and_columns_that_hold_nothing_are_not_drawn() -> None:
    job = holds("job survives", True)
    markup = page(run_of(None, decide([job])))
    assert not any(f'data-is="{name}"' in markup for name in ("evidence", "margin", "interval"))
    some = page(run_of(None, decide([job, *verdict(metrics()).checks])))
    assert '<td class="none" data-is="evidence"></td>' in some
    assert 'data-is="margin"' in some


def test_an_interval_of_rates_has_one_unit() -> None:
    check = at_least("busbw at least 5 Mbit/s", 17.5e6, 5e6, unit="bit/s", low=800e3, high=24.68e6)
    (row,) = check_rows([check])
    assert (row.interval, row.measured, row.limit) == ("0.8 to 24.7 Mbit/s", "17.5 Mbit/s", "5 Mbit/s")


def test_figures_of_one_kind_are_rounded_alike() -> None:
    share = at_least("goodput", 99.984, 90, unit="%", low=99.884, high=100.1)
    time = at_least("time", 112.2, 50, unit="ms", low=112.06, high=112.41)
    rows = check_rows([share, time])
    assert [row.interval for row in rows] == ["99.88 to 100.10 %", "112.1 to 112.4 ms"]
    assert [row.margin for row in rows] == ["9.98 %", "62.2 ms"]
    assert [row.limit for row in rows] == ["90 %", "50 ms"]


def test_a_table_beside_a_phone_s_edge_scrolls_in_its_own_box(whole: Run) -> None:
    markup = page(whole).partition("<body>")[2]
    assert markup.count("<table") == len(re.findall(r'<div class="wide"[^>]*>\s*<table', markup))


def test_what_a_page_says_itself_is_short(tmp_path: Path, whole: Run) -> None:
    """Sentences of at most 25 words: notes, and the meanings of terms."""
    markup = page(whole)
    told = re.findall(r'<p class="note">(.*?)</p>', markup) + re.findall(
        r"<dd>(.*?)</dd>", sections(markup)["Glossary"]
    )
    for sentence in (each for text in told for each in re.split(r"[.;:] ", text_of(text))):
        assert len(sentence.split()) <= 25, sentence


def test_a_nic_that_kept_its_goodput_has_no_row() -> None:
    tables = re.findall(r"<summary>goodput by NIC</summary>(.*?)</table>", page(run_of(metrics())), re.DOTALL)
    assert [text_of(table).count("sent by") for table in tables] == [1, 0]
    assert re.search(r"\d NICs kept at least (99|100)\.\d %", text_of(tables[1]))


def test_the_two_ends_of_an_outage_s_interval_differ() -> None:
    found = metrics()
    first = replace(found.edges[0], worst_outage_plbm_ms=4458.0, worst_outage_interval_ms=Interval(4457.1, 4459.2))
    text = text_of(page(run_of(replace(found, edges=(first, *found.edges[1:])))))
    assert "worst outage 4.46 s (4457 to 4459 ms)" in text
