"""The guest's console: lines out of bytes, the last ones, and signs of trouble."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.vm.console import TAIL_LINES, Console, Lines, trouble_in

_LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r")))


@given(_LINES, st.data())
def test_lines_do_not_depend_on_how_the_bytes_are_cut(lines: list[str], data: st.DataObject) -> None:
    stream = "".join(f"{line}\n" for line in lines).encode()
    cutter = Lines()
    found: list[str] = []
    while stream:
        at = data.draw(st.integers(1, len(stream)))
        found += cutter.feed(stream[:at])
        stream = stream[at:]
    assert found + list(cutter.rest()) == lines


def test_a_last_line_without_end_is_not_lost() -> None:
    cutter = Lines()
    assert list(cutter.feed(b"one\r\ntwo")) == ["one"]
    assert list(cutter.rest()) == ["two"]
    assert list(cutter.rest()) == []


def test_bytes_that_are_no_text_do_not_harm() -> None:
    assert list(Lines().feed(b"\xff\xfe\n")) == ["\ufffd\ufffd"]


@pytest.mark.parametrize(
    "line",
    [
        "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100",
        "[    2.1] BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "kernel BUG at net/core/skbuff.c:102!",
        "Oops: 0002 [#1] SMP",
        "rcu: INFO: rcu_sched self-detected stalls on CPU",
        "Out of memory: Killed process 23 (python3) total-vm:2GB",
    ],
)
def test_a_kernel_in_trouble_is_noticed(line: str) -> None:
    assert trouble_in(line)


@pytest.mark.parametrize(
    "line", ["reboot: Power down", "DEBUG: fine", "random: crng init done", "bond0: (slave eth0): link status up"]
)
def test_a_healthy_kernel_is_left_alone(line: str) -> None:
    assert not trouble_in(line)


def test_what_a_command_prints_is_no_trouble_and_reaches_the_listener() -> None:
    heard: list[str] = []
    console = Console(heard.append)
    console.command("BUG: says a drill")
    console.kernel("booting")
    assert heard == ["BUG: says a drill"]
    assert console.trouble is None
    assert console.last_words() == "BUG: says a drill | booting"


def test_the_first_trouble_and_the_last_lines_are_kept() -> None:
    console = Console(lambda _line: None)
    console.kernel("Oops: 1")
    console.kernel("Kernel panic: 2")
    for number in range(2 * TAIL_LINES):
        console.kernel(str(number))
    assert console.trouble == "Oops: 1"
    assert console.tail[-1] == str(2 * TAIL_LINES - 1)
    assert len(console.tail) == TAIL_LINES
