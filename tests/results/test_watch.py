"""A lab on the screen and in a log: what is wrong first, at 80x24 and 160x45, of a small and of a large fabric."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from hpn.results.watch.event_lines import EventLines, HeardEvent
from hpn.results.watch.lately import Lately
from hpn.results.watch.outputs import ChangesSince, JsonLines, Log, document
from hpn.results.watch.problems import problems
from hpn.results.watch.screen import block, picture
from hpn.results.watch.snapshot import Snapshot
from hpn.testbed.condition import Condition
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel.rtnetlink.qdisc import Rate
from tests.results.test_terminal import check_golden

TINY, MEDIUM = build(PRESETS["tiny"].spec), build(PRESETS["medium"].spec)
AT_NS = 100 * 10**9
NOON_NS = 12 * 3600 * 10**9 - AT_NS
LINK, TOR, NIC = "p0.s0.h0.r0.0", "p0.s0.t0.0", "p0.s0.h0.r0"


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def condition(fabric: Fabric, *broken: str, at_ns: int = AT_NS) -> Condition:
    """That of a lab some time after these links lost carrier and these switches crashed."""
    switches = [name for name in broken if name in fabric.node_by_name]
    links = [fabric.link(name) for name in broken if name in fabric.link_by_name]
    links += [link for name in switches for link in fabric.links_of(name)]
    ends = [end for link in links for end in (link.lower, link.upper)]
    access = [end for link in links if link.kind is LinkKind.ACCESS for end in (link.lower, link.upper)]
    lost = {nic.name: sum(link in links for link in nic.links) for nic in fabric.nics}
    return Condition(
        at_ns=at_ns,
        broken=tuple(sorted({*switches, *(link.name for link in links)})),
        dead=tuple(switches),
        dark=tuple(end.label for end in ends),
        idle={end.label: ("detached", "no carrier") for end in access},
        active={nic.name: len(nic.links) - lost[nic.name] for nic in fabric.nics if lost[nic.name]},
        sessions_down=tuple(end.label for link in links if link.is_routed for end in (link.lower, link.upper)),
        routes={name: f"{name}: 1 of 8 routes incomplete" for name in ("p0.a0.0", "p0.a0.1")} if broken else {},
    )


def moment(fabric: Fabric, found: Condition, busy: dict[str, tuple[float, float]] | None = None) -> Snapshot:
    """``busy``: links to the shares of their rate that pass up and down."""
    rates = {}
    for name, (up, down) in (busy or {}).items():
        link = fabric.link(name)
        rates[link.lower.ifindex] = Rate(up * link.rate_bps, 0.0, 0)
        rates[link.upper.ifindex] = Rate(down * link.rate_bps, 3.0, 1500)
    return Snapshot(fabric.spec.name, "nft", 192.4, fabric, found, rates)


def news(*events: tuple[int, str, str, str, str]) -> EventLines:
    """Events at so many ms after noon: kind, what, node, subject."""
    made = EventLines(NOON_NS)
    for at_ms, kind, what, node, subject in events:
        event = {"at_ns": AT_NS + at_ms * 10**6, "kind": kind, "what": what, "node": node, "subject": subject}
        made.hear([HeardEvent.of(event)])
    return made


def lately(seen: Snapshot) -> Lately:
    """A moment after ten in which links were busier and busier."""
    found = Lately()
    for at in range(10):
        loads = {link.lower.ifindex: Rate(at * link.rate_bps / 9, 0.0, 0) for link in seen.fabric.links}
        found.look(replace(seen, condition=Condition(AT_NS), rates=loads))
    found.look(seen)
    return found


CRASH = news(
    (0, "fault", "injected", TOR, "by hand"),
    *((1, "link", "carrier-down", f"p0.s0.h{number}", "r0p0") for number in range(2)),
    (1, "lag", "active", "p0.s0.h0", "bond0"),
    (2, "bgp", "down", "p0.a0.0", "s0r0t0"),
    *((3, "route", "host-route-removed", "p0.a0.0", f"10.0.0.{number}/32") for number in range(2)),
    *((4, "lacp", what, "p0.s0.h0", "r0p0") for what in ("detached", "waiting", "attached", "expired")),
)
BUSY = {LINK: (0.0, 0.0), "p0.s0.h0.r0.1": (0.953, 0.4), "p0.s0.t0.1-p0.a1.0": (0.25, 0.125)}
SHOWN = {
    "tiny-well": (moment(TINY, Condition(AT_NS), {LINK: (0.95, 0.94)}), news()),
    "tiny-crash": (moment(TINY, condition(TINY, TOR), BUSY), CRASH),
    "tiny-cut-off": (moment(TINY, condition(TINY, LINK, "p0.s0.h0.r0.1"), {}), news()),
    "medium-broken": (
        moment(MEDIUM, condition(MEDIUM, TOR, *(f"p0.s1.h{n}.r0.1" for n in range(12))), {"p0.s2.h0.r0.0": (0.5, 0.9)}),
        CRASH,
    ),
}


@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["80x24", "160x45"])
@pytest.mark.parametrize("name", SHOWN)
def test_a_screen_as_it_was_approved(name: str, size: tuple[int, int]) -> None:
    seen, heard = SHOWN[name]
    since = {trouble.key: AT_NS - 12 * 10**9 for trouble in problems(seen)}
    lines = [line.plain.rstrip() for line in picture(seen, since, heard, lately(seen), *size)]
    assert len(lines) <= size[1]
    assert max(map(len, lines)) <= size[0]
    check_golden(f"watch/{name}-{size[0]}x{size[1]}.txt", "\n".join(lines) + "\n")


@given(st.integers(20, 250), st.integers(3, 90), st.sampled_from(sorted(SHOWN)))
def test_no_terminal_is_overrun_and_the_headline_is_always_seen(width: int, height: int, name: str) -> None:
    seen, heard = SHOWN[name]
    lines = picture(seen, {}, heard, lately(seen), width, height)
    assert len(lines) <= height
    assert all(line.cell_len <= width for line in lines)
    assert lines[1].plain.startswith("all is well" if name == "tiny-well" else tuple("0123456789"))


def test_a_link_has_a_mark_for_each_reading_and_none_for_a_redraw() -> None:
    link = TINY.link(LINK)
    seen = moment(TINY, Condition(AT_NS), {LINK: (0.5, 0.0)})
    dropped = replace(seen, rates={link.lower.ifindex: Rate(0.0, 1.0, 0)})
    dark = replace(moment(TINY, condition(TINY, LINK)), rates={})
    found = Lately()
    for each in (seen, seen, dropped, dark, moment(TINY, Condition(AT_NS), {LINK: (1.2, 0.0)})):
        found.look(each)
    assert found.of(link) == "xx!x"
    assert found.of(TINY.link("p0.s0.h1.r0.0")) == "...."


def test_what_went_down_with_a_switch_is_counted_and_not_told_again() -> None:
    found = problems(moment(TINY, condition(TINY, TOR)))
    assert [(trouble.kind, trouble.part) for trouble in found] == [
        ("switch dead", TOR),
        ("routes missing", "routes"),
    ]
    assert "2 LAG ports, 2 switch links" in str(found[0])


def test_a_nic_without_any_port_comes_before_everything_else() -> None:
    found = problems(moment(TINY, condition(TINY, "p0.s1.t0.0", LINK, "p0.s0.h0.r0.1")))
    assert [trouble.part for trouble in found] == [NIC, "p0.s1.t0.0", "routes"]


def test_protocols_that_are_down_though_the_link_is_up_are_told_with_their_reason() -> None:
    idle, session = {"p0.s0.h0:r0p0": ("detached", "hears no LACPDU")}, ("p0.a0.0:s0r0t0",)
    found = problems(moment(TINY, Condition(AT_NS, idle=idle, sessions_down=session)))
    assert [str(trouble) for trouble in found] == [
        f"{LINK} LACP detached: hears no LACPDU",
        "p0.s0.t0.0-p0.a0.0 BGP no session (p0.a0.0)",
    ]


def test_a_switch_that_lost_its_daemon_by_itself_was_not_broken_by_hand() -> None:
    (found,) = problems(moment(TINY, Condition(AT_NS, dead=(TOR,))))
    assert str(found) == f"{TOR} has lost its BGP daemon"


def test_a_cause_keeps_its_age_until_it_is_over() -> None:
    since = ChangesSince()
    first = moment(TINY, condition(TINY, LINK))
    assert [[trouble.part for trouble in some] for some in since.look(first)] == [[LINK, "routes"], []]
    later = moment(TINY, condition(TINY, LINK, at_ns=AT_NS + 5 * 10**9))
    assert since.look(later) == ([], [])
    assert document(later, since)["wrong"][0]["for_s"] == 5.0  # type: ignore[index]  # a document of JSON values
    assert [trouble.part for trouble in since.look(moment(TINY, Condition(AT_NS)))[1]] == [LINK, "routes"]
    assert since.at_ns == {}


def test_a_log_has_a_block_and_then_only_what_changes() -> None:
    told: list[str] = []
    log = Log(told.append, NOON_NS)
    log.show(moment(TINY, Condition(AT_NS)))
    assert told == block(moment(TINY, Condition(AT_NS)), {})
    told.clear()
    log.show(moment(TINY, Condition(AT_NS)))
    log.hear([{"at_ns": AT_NS, "kind": "link", "what": "carrier-down", "node": "p0.s0.h0", "subject": "r0p0"}])
    log.show(moment(TINY, condition(TINY, LINK)))
    log.show(moment(TINY, Condition(AT_NS + 10**9)))
    assert told == [
        "12:00:00.000 link carrier-down p0.s0.h0:r0p0",
        f"12:00:00.000 wrong: {LINK} has no carrier (by hand), its LAG uses 1 of 2 ports",
        "12:00:00.000 wrong: routes to NICs are missing on 2 switches, such as p0.a0.0: 1 of 8 routes incomplete",
        f"12:00:01.000 no longer: {LINK} has no carrier (by hand), its LAG uses 1 of 2 ports",
        "12:00:01.000 no longer: routes to NICs are missing on 2 switches, such as p0.a0.0: 1 of 8 routes incomplete",
        "12:00:01.000 all is well",
    ]


def test_json_lines_are_one_document_each() -> None:
    told: list[str] = []
    lines = JsonLines(told.append)
    lines.show(moment(TINY, condition(TINY, LINK), BUSY))
    lines.hear([{"kind": "link"}])
    status, event = map(json.loads, told)
    assert event == {"event": {"kind": "link"}}
    assert [plane["links"] for plane in status["status"]["planes"]] == [
        {"well": 15, "all": 16},
        {"well": 16, "all": 16},
    ]
    (busy,) = (row for row in status["status"]["links"] if row["link"] == "p0.s0.h0.r0.1")
    assert (busy["state"], busy["load"]) == ("distributing", 0.953)


def test_a_queue_pair_that_is_stuck_stays_on_the_screen_and_is_in_log_and_json() -> None:
    """Path control moves many more; the one that it could not move is what somebody has to know."""
    stuck = {"at_ns": 1, "kind": "path", "node": "p0.s0.h5", "subject": "41", "what": "stuck", "detail": {"tries": 128}}
    moved = [stuck | {"at_ns": 10**9 * at, "subject": str(at), "what": "moved"} for at in range(1, 6)]
    made = EventLines(0)
    made.hear(HeardEvent.of(event) for event in (stuck, *moved))
    assert "path stuck" in made.last(2)[0]
    assert "p0.s0.h5:41 tries=128" in made.last(2)[0]
    told: list[str] = []
    Log(told.append, 0).hear([stuck])
    JsonLines(told.append).hear([stuck])
    assert [line.split()[-1] for line in told[:1]] == ["tries=128"]
    assert json.loads(told[1])["event"]["what"] == "stuck"


def test_nothing_that_an_event_says_reaches_the_terminal_as_a_command() -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J[red]\u202e\n"
    event: dict[str, object] = dict.fromkeys(("kind", "what", "node", "subject"), hostile)
    event |= {"at_ns": "never", "detail": {hostile: hostile}}
    made = EventLines(0)
    made.hear([HeardEvent.of(event), HeardEvent.of({})])
    lines = [*made.last(9), made.line(HeardEvent.of(event))]
    assert all(line.isprintable() for line in lines)
    assert "[red]" in Text(lines[0]).plain, "brackets are brackets"
