"""The log of a lab's supervisor: it stays small, and tells how it began and what came last."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpn.testbed.lab.service import bounded_log
from hpn.testbed.lab.service.labfolder import LabFolder


@contextmanager
def _logging(folder: Path) -> Iterator[Path]:
    """A log that this process prints to."""
    before, place = (sys.stdout, sys.stderr), LabFolder(folder)
    fd = bounded_log.create(place.log)
    bounded_log.write_to(fd)
    try:
        yield place.log
    finally:
        sys.stdout, sys.stderr = before
        os.close(fd)


def test_a_log_without_end_keeps_its_beginning_and_its_newest_lines(tmp_path: Path) -> None:
    with _logging(tmp_path) as opened:
        largest = 0
        for number in range(60_000):
            print(f"line {number} {'x' * 60}", file=sys.stderr)
            if number % 100 == 0:
                largest = max(largest, opened.stat().st_size)
        lines = opened.read_text().splitlines()
        assert bounded_log.MOST // 2 < largest <= bounded_log.MOST
        assert lines[0].startswith("line 0 ")
        assert lines[-1].startswith("line 59999 ")
        assert LabFolder(opened.parent).last_words().startswith("line 59999 ")
        assert sum(line.startswith("[lines left out") for line in lines) == 1
        numbers = [int(line.split()[1]) for line in lines if not line.startswith("[")]
        assert numbers == sorted(set(numbers)), "each line once, whole and in order"
        assert len([number for number in numbers if number < 10_000]) > 1000


def test_one_line_longer_than_a_log_is_cut_to_its_end(tmp_path: Path) -> None:
    with _logging(tmp_path) as opened:
        print("first", file=sys.stderr)
        print("y" * (3 * bounded_log.MOST) + "end", file=sys.stderr)
        print("last", file=sys.stderr)
        assert opened.stat().st_size <= bounded_log.MOST
        text = opened.read_text()
        assert text.startswith("first\n")
        assert text.endswith("yend\nlast\n")


def test_what_several_processes_write_is_one_log_and_an_empty_one_stays_so(tmp_path: Path) -> None:
    with _logging(tmp_path) as opened:
        children = []
        for child in range(3):
            pid = os.fork()
            if pid == 0:
                for number in range(5000):
                    print(f"{child} {number} {'z' * 100}", file=sys.stderr)
                os._exit(0)
            children.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
        print("last", file=sys.stderr)
        assert opened.stat().st_size <= bounded_log.MOST + (1 << 16)
        assert opened.read_text().endswith("\nlast\n")
        os.truncate(opened, 0)
        print("again", file=sys.stderr)
        assert opened.read_text() == "again\n"
