"""What a client prints becomes lines and steps, whatever it prints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.client.lines import (
    MAX_LINE,
    ClientStep,
    GaveUp,
    Line,
    LineReader,
    Misread,
    Output,
    Ready,
    line_of,
    parse,
)

_HOSTILE = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=60).map(str.encode),
    st.sampled_from([b"hpn step ", b"hpn ready\n", b"\xff\xfe", b"\x1b[2J", b"\0", b"\n", b"x" * 5000, b"\xe2\x80"]),
)


@given(st.lists(_HOSTILE, max_size=30))
def test_whatever_is_printed_becomes_printable_lines_of_bounded_length(pieces: list[bytes]) -> None:
    reader = LineReader()
    lines = [line for piece in pieces for line in reader.feed(piece)] + reader.end()
    assert all(line.text.isprintable() and len(line.text.encode()) <= MAX_LINE for line in lines)
    ended = b"".join(pieces).count(b"\n")
    assert ended <= len(lines) <= ended + 1
    for line in lines:
        parse(line)


@given(st.lists(st.text("abc ", max_size=20), max_size=10), st.data())
def test_lines_do_not_depend_on_how_they_arrive(lines: list[str], data: st.DataObject) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=8)))
    reader = LineReader()
    found = [
        line.text
        for begin, end in zip([0, *cuts], [*cuts, len(content)], strict=True)
        for line in reader.feed(content[begin:end])
    ]
    assert found == lines
    assert reader.end() == []


def test_a_line_without_end_is_held_up_to_its_limit() -> None:
    reader = LineReader()
    for _ in range(100):
        assert reader.feed(b"x" * 65536) == []
    assert len(reader._held) == MAX_LINE
    assert reader.end() == [Line("x" * MAX_LINE, cut=True)]


def test_what_cannot_be_printed_is_escaped() -> None:
    assert line_of(b"a\x1b[31m\xff\tb").text == r"a\x1b[31m\xff b"
    assert line_of("\u202ebad".encode()).text == r"\u202ebad"


@given(
    st.integers(0, 2**32 - 1),
    st.one_of(st.none(), st.tuples(st.integers(0, 2**60), st.integers(0, 2**60)).map(sorted)),
    st.sampled_from(["", "all-reduce"]),
    st.integers(0, 2**40),
    st.sampled_from(["", "00ff"]),
    st.integers(0, 5),
)
def test_a_step_is_read_as_it_was_told(
    number: int, times: list[int] | None, kind: str, size: int, checksum: str, wrong: int
) -> None:
    words = [f"hpn step {number}"]
    words += [] if times is None else [f"begin={times[0]}", f"end={times[1]}"]
    words += [f"kind={kind}"] if kind else []
    words += [f"bytes={size}"] if size else []
    words += [f"sum={checksum}"] if checksum else []
    words += [f"wrong={wrong}"] if wrong else []
    begin_ns, end_ns = times or (None, None)
    assert parse(Line(" ".join(words))) == ClientStep(
        number, None, begin_ns, end_ns, kind, size, checksum, wrong or None
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hpn step", "no number"),
        ("hpn step x", "no whole number"),
        ("hpn step -1", "no whole number"),
        ("hpn step 4294967296", "no whole number"),
        ("hpn step 99999999999999999999", "no whole number"),
        ("hpn step ٣", "no whole number"),
        ("hpn step 1 begin=3", "both or none"),
        ("hpn step 1 begin=3 end=2", "ends before it begins"),
        ("hpn step 1 kind=a kind=b", "twice"),
        ("hpn step 1 colour=red", "none of rank="),
        ("hpn step 1 sum=xyz", "does not match"),
        ("hpn step 1 kind=All_Reduce", "does not match"),
        ("hpn ready now", "behind ready"),
    ],
)
def test_a_line_that_was_meant_for_us_and_is_wrong_says_why(text: str, why: str) -> None:
    said = parse(Line(text))
    assert isinstance(said, Misread)
    assert why in said.why


def test_a_step_that_was_cut_is_none() -> None:
    assert isinstance(parse(Line("hpn step 12", cut=True)), Misread)


def test_other_lines_are_output() -> None:
    assert parse(Line("hpn ready")) == Ready()
    assert parse(Line("hpn error no route to 10.0.0.1")) == GaveUp("no route to 10.0.0.1")
    for text in ("", "hpn", "hpn is a testbed", "hpnstep 1", " hpn ready"):
        assert parse(Line(text)) == Output(text)
