"""YAML at the edge: hostile and broken files end in one line each with the way out, never in a traceback."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.errors import InputError
from hpn.testbed.files.document import DEPTH_LIMIT, SIZE_LIMIT, Document, parse, read


def problems(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(text, "f.yaml")
    return list(caught.value.problems)


def found(reading: Callable[[], Document]) -> tuple[str, ...]:
    try:
        reading()
    except InputError as error:
        return error.problems
    return ()


def unreadable(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    (problem,) = caught.value.problems
    return problem


def test_every_key_and_item_knows_its_line() -> None:
    document = parse("a: 1\nb:\n  - x\n  - {c: 2,\n     d: 3}\n", "f.yaml")
    assert document.data == {"a": 1, "b": ["x", {"c": 2, "d": 3}]}
    assert [document.line(w) for w in (("a",), ("b",), ("b", 0), ("b", 1, "c"), ("b", 1, "d"))] == [1, 2, 3, 4, 5]
    assert document.problem(("b", 1, "missing", 7), "x") == "f.yaml:4: x"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("12:30", "12:30"),
        ("010", 10),
        ("0x10", "0x10"),
        ("1_000", 1000),
        ("1e3", 1000.0),
        (".5", 0.5),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("9" * 400, "9" * 400),
        ("2024-01-01", "2024-01-01"),
        ("yes", True),
        ("Off", False),
        ("'yes'", "yes"),
        ("~", None),
        ("10:00:00:00:00:01", "10:00:00:00:00:01"),
    ],
)
def test_plain_values_mean_what_they_show(written: str, meant: object) -> None:
    assert parse(f"k: {written}", "f.yaml").data == {"k": meant}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "f.yaml:1: the file is empty; write 'key: value' lines"),
        ("- a\n- b", "f.yaml:1: the file is a list; write 'key: value' lines"),
        ("just text", "f.yaml:1: the file is a single value; write 'key: value' lines"),
        ("a: 1\nb: 2\na: 3", "f.yaml:3: key 'a' stands here again (first in line 1); keep one"),
        ("a: &x 1", "f.yaml:1: '&x' is a YAML anchor; write the value out where it is needed"),
        ("a: 1\nb: *x", "f.yaml:2: '*x' is a YAML alias; write the value out"),
        (
            "a: !!python/object/apply:os.system [ls]",
            "f.yaml:1: 'tag:yaml.org,2002:python/object/app...' is a YAML tag; remove it and write the plain value",
        ),
        ("<<: {a: 1}", "f.yaml:1: '<<' is a YAML merge key; write the keys out"),
        ("a: 1\n---\nb: 2", "f.yaml:2: a second document starts here; keep one per file"),
        ("a:\n\tb: 1", "f.yaml:2: a tab stands here; indent with spaces"),
        ("a: b: c", "f.yaml:1: a ':' stands where none can; start a new line or quote the text"),
        ("a: %x", "f.yaml:1: text starts with '%'; put it in quotes"),
        ("a: @x", "f.yaml:1: text starts with a character that means something in YAML; put it in quotes"),
        ("a: {b: 1", "f.yaml:1: a '{' is not closed or a ',' is missing; write {key: value, key: value}"),
        ("a: [b, c", "f.yaml:1: a '[' is not closed or a ',' is missing; write [one, two]"),
        ("a: 1\n b: 2", "f.yaml:2: a ':' stands where none can; start a new line or quote the text"),
        ("a:\n  b: 1\n c: 2", "f.yaml:3: the indentation does not match the lines above; align it with its neighbours"),
        ("a: 'x", "f.yaml:1: a quote is opened and never closed; close it"),
        ("a\nb: 1", "f.yaml:2: a ':' stands where none can; start a new line or quote the text"),
        ("? [a]\n: 1", "f.yaml:1: a key must be plain text, not a list or mapping; write 'key: value'"),
        ("a: \x07", "f.yaml:1: character '\\x07' is not allowed in YAML; remove it"),
    ],
)
def test_a_broken_file_says_where_and_what_to_write(text: str, expected: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith(expected)


def test_several_mistakes_are_reported_together() -> None:
    assert [p.split(":")[1] for p in problems("a: &x 1\na: 2\nb: *x\nc: !t 3")] == ["1", "2", "3", "4"]


def test_billion_laughs_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    started = time.process_time()
    assert len(problems("\n".join(lines))) > 40
    assert time.process_time() - started < 5


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused_without_recursion_error(opening: str) -> None:
    first, *_ = problems("k:\n " + opening * 20_000)
    assert f"nested deeper than {DEPTH_LIMIT} levels; flatten it" in first


@given(st.text(max_size=200))
def test_no_text_raises_anything_but_an_input_error(text: str) -> None:
    assert all(p.startswith("f.yaml:") and "\n" not in p for p in found(lambda: parse(text, "f.yaml")))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_an_input_error(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "raw.yaml"
    path.write_bytes(raw)
    assert all("\n" not in p for p in found(lambda: read(path)))


def test_files_that_are_not_yaml_are_refused(tmp_path: Path) -> None:
    (tmp_path / "zero").write_bytes(b"a: 1\0")
    (tmp_path / "latin").write_bytes(b"a: 1\nb: \xe9")
    (tmp_path / "elf").write_bytes(b"\x7fELF\x02\x01\x01\0")
    os.truncate(tmp_path / "zero", 100 * 1024 * 1024)
    assert unreadable(tmp_path / "zero").endswith(
        f"larger than {SIZE_LIMIT // 1024} KiB; this is not a drill or topology file"
    )
    assert unreadable(tmp_path / "latin").endswith("latin:2: not UTF-8 text; save the file as UTF-8")
    assert unreadable(tmp_path / "elf").endswith("a binary file (it holds NUL bytes); name a YAML text file")


def test_a_byte_order_mark_and_dos_line_ends_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "dos.yaml").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert read(tmp_path / "dos.yaml").data == {"a": 1, "b": 2}


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "link-down.yaml").write_text("a: 1")
    near = tmp_path / "link-down.yaml"
    assert unreadable(tmp_path / "link-dwn.yaml").endswith(f"no such file; did you mean {near}?")
    assert unreadable(tmp_path / "link-down").endswith(f"no such file; did you mean {near}?")
    assert unreadable(tmp_path / "zzz.yaml").endswith("no such file; check the path")
    assert "there is no directory" in unreadable(tmp_path / "no" / "a.yaml")


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").mkdir()
    (tmp_path / "d.yaml" / "inside.yaml").write_text("a: 1")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert unreadable(tmp_path / "d.yaml").endswith("a directory; name a file in it, such as inside.yaml")
    assert unreadable(tmp_path / "fifo").endswith("not a regular file; name a YAML file")
    assert unreadable("/dev/zero").endswith("not a regular file; name a YAML file")
    assert "cannot be read" in unreadable(tmp_path / "loop")
    assert "cannot be read" in unreadable(tmp_path / ("x" * 300))
    assert unreadable("a\0b") == "a\\x00b: not a file name; remove the NUL character"
