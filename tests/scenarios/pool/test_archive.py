"""A folder as bytes: what comes back is what went, and nothing that a worker makes up is written anywhere else."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pytest

from hpn.scenarios.batch.pool import archive
from hpn.scenarios.batch.pool.archive import pack, unpack
from hpn.testbed.errors import MachineError


def forged(listed: object, content: bytes = b"") -> bytes:
    head = listed if isinstance(listed, bytes) else json.dumps(listed).encode()
    return zlib.compress(struct.pack(">I", len(head)) + head + content)


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_folder_comes_back_as_it_was(tmp_path: Path) -> None:
    there, here = folder(tmp_path / "there"), folder(tmp_path / "here")
    (there / "a" / "b").mkdir(parents=True)
    (there / "a" / "b" / "ü.json").write_bytes(b"x" * 3_000_000)
    (there / "empty").write_bytes(b"")
    unpack(pack(there), here)
    found = {str(path.relative_to(here)): path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert found == {"a/b/ü.json": b"x" * 3_000_000, "empty": b""}
    assert len(pack(there)) < 20_000


HOSTILE: dict[str, bytes] = {
    "a path out of it": forged([["../x", 1]], b"x"),
    "a path within, and out": forged([["a/../../x", 1]], b"x"),
    "an absolute path": forged([["/tmp/hpn-hostile", 1]], b"x"),
    "no name": forged([["", 0]]),
    "a dot": forged([["a/./b", 0]]),
    "a NUL": forged([["a\0b", 0]]),
    "an escape": forged([["\x1b[31m", 0]]),
    "half a surrogate": forged(b'[["\\ud800", 0]]'),
    "a long name": forged([["n" * 256, 0]]),
    "deep": forged([["/".join("a" * 17), 0]]),
    "a size below nothing": forged([["a", -1]]),
    "a size that is none": forged([["a", True]]),
    "a size that is no number": forged(b'[["a", NaN]]'),
    "a size beyond all": forged([["a", 1 << 62]]),
    "many that are too much": forged([["a", 1 << 29], ["b", 1 << 29], ["c", 1]]),
    "a file twice": forged([["a", 0], ["a", 0]]),
    "a file that is a folder too": forged([["a", 0], ["a/b", 0]]),
    "no list": forged({"a": 0}),
    "no JSON": forged(b"{"),
    "deep JSON": forged(b"[" * 100_000),
    "too many files": forged([[str(at), 0] for at in range(archive.MOST_FILES + 1)]),
    "a list that is too long": zlib.compress(struct.pack(">I", 1 << 31)),
    "too little": forged([["a", 5]], b"abcd"),
    "too much": forged([["a", 3]], b"abcd"),
    "something behind it": forged([["a", 1]], b"x") + b"more",
    "cut": forged([["a", 100_000]], bytes(range(256)) * 400)[:-7],
    "nothing": b"",
    "no zlib": b"PK\x03\x04 hello",
}


@pytest.mark.parametrize("packed", HOSTILE.values(), ids=HOSTILE)
def test_what_no_worker_of_ours_packs_is_refused_in_one_line(tmp_path: Path, packed: bytes) -> None:
    inside = folder(tmp_path / "inside")
    with pytest.raises(MachineError, match="nothing that hpn packs") as refused:
        unpack(packed, inside)
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1000)
    with pytest.raises(MachineError, match="more than"):
        unpack(forged([["a", 1001]], bytes(1001)), tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(archive, "MOST_PACKED", 10)
    with pytest.raises(MachineError, match="nothing that hpn packs"):
        unpack(bytes(11), tmp_path)


def test_what_is_too_much_or_no_file_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = folder(tmp_path / "there")
    (there / "link").symlink_to("/etc/passwd")
    with pytest.raises(MachineError, match="a run left link, which is no file"):
        pack(there)
    (there / "link").unlink()
    (there / "records").write_bytes(bytes(range(256)) * 20)
    monkeypatch.setattr(archive, "MOST_PACKED", 100)
    with pytest.raises(MachineError, match="leave --keep-records out"):
        pack(there)
    monkeypatch.setattr(archive, "MOST_BYTES", 1000)
    with pytest.raises(MachineError, match="1 files of 0 MB"):
        pack(there)
