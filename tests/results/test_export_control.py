"""Control frames of a run for Wireshark: tshark reads them, and finds each fault at the frame that is nearest."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from hpn.results.export.control import control_frames, is_control
from hpn.results.run.folder import RunFolder
from hpn.results.run.reading import read
from hpn.testbed.errors import InputError
from hpn.testbed.kernel.packets import pcapng
from hpn.testbed.kernel.packets.pcapng import Direction
from hpn.testbed.kernel.packets.pcapng_reading import Frame, blocks
from tests.failover.synthetic import MS, S
from tests.results.whole import whole_run

_MACS = bytes(range(12))
ARP = _MACS + bytes.fromhex("0806 0001080006040001") + bytes(20)


def _ip(protocol: int, sport: int, dport: int, body: bytes = bytes(8)) -> bytes:
    segment = sport.to_bytes(2, "big") + dport.to_bytes(2, "big") + (8 + len(body) - 4).to_bytes(2, "big") + bytes(2)
    if protocol == 6:  # TCP's header: 20 bytes long, SYN
        segment = segment[:4] + bytes(8) + bytes.fromhex("5002") + bytes(6)
        body = b""
    packet = segment + body
    head = bytes.fromhex("4500") + (20 + len(packet)).to_bytes(2, "big") + bytes(4) + bytes([64, protocol])
    return _MACS + b"\x08\0" + head + bytes(2) + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + packet


BGP, ROCE = _ip(6, 40000, 179), _ip(17, 50000, 4791)


def _captured(run: RunFolder, name: str, frames: list[tuple[int, int, bytes]], links: tuple[str, ...]) -> Path:
    """A file as a drill leaves it: (stamp, number of the link, frame)."""
    place = run.path / "captures"
    place.mkdir(exist_ok=True)
    parts = [pcapng.section("hpn", "stamps are CLOCK_MONOTONIC")]
    parts += [pcapng.interface(link, f"{link} end", 10**9, 256) for link in links]
    parts += [pcapng.packet(number, at, frame, len(frame) + 3, Direction.OUT) for at, number, frame in frames]
    parts += [pcapng.statistics(0, 9 * S, len(frames), 0)]
    (place / name).write_bytes(b"".join(parts))
    return place / name


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Captures around the failure at 4 s and the repair at 6 s of a run; links in another order in the second."""
    made = whole_run(tmp_path / "run")
    early = [(4 * S - 2 * MS, 0, ARP), (4 * S - MS, 0, ROCE), (4 * S + 500_000, 1, BGP), (4 * S + MS, 0, ARP)]
    _captured(made, "1-cut-failure.pcapng", early, ("left", "right"))
    _captured(made, "2-cut-repair.pcapng", [(6 * S + 3 * MS, 0, ARP)], ("right", "left"))
    return made


def test_control_frames_of_all_files_are_one_capture_with_the_faults_in_it(run: RunFolder) -> None:
    found = control_frames(read(run.path))
    frames = [each for each in blocks(found.file) if isinstance(each, Frame)]
    assert [(f.at_ns, f.interface) for f in frames] == [
        (4 * S - 2 * MS, 0),
        (4 * S + 500_000, 1),
        (4 * S + MS, 0),
        (6 * S + 3 * MS, 1),
    ]
    assert {frame.content for frame in frames} == {ARP, BGP}, "no data"
    assert {frame.direction for frame in frames} == {Direction.OUT}
    assert all(frame.frame_bytes == len(frame.content) + 3 for frame in frames)
    assert (found.frames, found.comments, found.gaps) == (4, 2, ())


def test_a_fault_with_no_control_frame_near_is_told_at_a_frame_of_data(run: RunFolder) -> None:
    _captured(run, "2-cut-repair.pcapng", [(6 * S + at * MS, 0, ROCE) for at in range(-5, 6)], ("right", "left"))
    frames = [each for each in blocks(control_frames(read(run.path)).file) if isinstance(each, Frame)]
    assert [(frame.at_ns, frame.content) for frame in frames[3:]] == [(6 * S, ROCE)]


def test_the_nearest_frame_may_be_the_one_before(run: RunFolder) -> None:
    _captured(run, "2-cut-repair.pcapng", [(6 * S - MS, 0, ROCE), (6 * S + 5 * MS, 0, ROCE)], ("right", "left"))
    frames = [each for each in blocks(control_frames(read(run.path)).file) if isinstance(each, Frame)]
    assert [frame.at_ns for frame in frames[3:]] == [6 * S - MS]


def _tshark(file: Path, *arguments: str) -> list[str]:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    command = [tshark, "-r", str(file), "-T", "fields", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_tshark_finds_each_fault_at_the_nearest_frame(run: RunFolder, tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes(control_frames(read(run.path)).file)
    fields = ("-e", "frame.number", "-e", "frame.interface_name", "-e", "frame.comment")
    cut, repair = _tshark(file, "-Y", "frame.comment", *fields)
    assert cut.split("\t")[:2] == ["2", "right"]
    assert "failure 0" in cut
    assert cut.endswith("500 us before this frame")
    assert repair.split("\t")[:2] == ["4", "right"]
    assert repair.endswith("3 ms before this frame")
    assert _tshark(file, "-Y", "_ws.malformed || _ws.expert.severity >= error", *fields) == []
    assert len(_tshark(file, *fields)) == 4


@pytest.mark.parametrize(
    "frame", [ARP, BGP, _ip(1, 0, 0), _ip(17, 50000, 3784), _MACS + b"\x88\x09", _MACS + b"\x88\xb5"]
)
def test_control_is_control(frame: bytes) -> None:
    assert is_control(frame)


@pytest.mark.parametrize("frame", [ROCE, _ip(6, 5201, 40000), b"", _MACS, BGP[:34], _MACS + b"\x86\xdd" + bytes(60)])
def test_data_and_stubs_are_not(frame: bytes) -> None:
    assert not is_control(frame)


def test_a_file_that_was_cut_gives_what_is_whole_and_is_named(run: RunFolder) -> None:
    path = run.path / "captures" / "1-cut-failure.pcapng"
    whole = path.read_bytes()
    for length in range(0, len(whole), len(whole) // 20):
        path.write_bytes(whole[:length])
        found = control_frames(read(run.path))
        assert found.frames >= 1
        (gap,) = found.gaps
        assert gap.startswith("captures/1-cut-failure.pcapng: it ")


def test_what_the_machine_lost_is_told(run: RunFolder) -> None:
    path = run.path / "captures" / "2-cut-repair.pcapng"
    path.write_bytes(path.read_bytes() + pcapng.statistics(0, 9 * S, 7, 6))
    assert control_frames(read(run.path)).gaps == ("captures/2-cut-repair.pcapng: 6 frames that the machine lost",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"x" * 40, "no pcapng file"),
        (bytes.fromhex("0a0d0d0a 1c000000 1a2b3c4d") + bytes(16), "not little-endian"),
        (pcapng.section("x", "y") * 2, "second section"),
        (pcapng.section("x", "y") + pcapng.packet(0, 1, ARP, 42, Direction.IN), "of no interface"),
        (pcapng.section("x", "y") + pcapng.interface("l", "l", 1, 64).replace(b"\x09\0\x01\0\x09", b"\x09\0\x01\0\x06"),
         "not in nanoseconds"),
    ],
)  # fmt: skip
def test_what_is_no_capture_of_ours_is_told(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        list(blocks(content))


def test_without_control_frames_or_captures_it_says_what_to_do(run: RunFolder, tmp_path: Path) -> None:
    shutil.rmtree(run.path / "captures")
    with pytest.raises(InputError, match=r"'capture: \{\}' records them"):
        control_frames(read(run.path))
    _captured(run, "1-x.pcapng", [], ("left",))
    with pytest.raises(InputError, match="captures are empty"):
        control_frames(read(run.path))
    outside = tmp_path / "outside.pcapng"
    (run.path / "captures" / "1-x.pcapng").rename(outside)
    (run.path / "captures" / "1-x.pcapng").symlink_to(outside)
    with pytest.raises(InputError, match="leads out of the run folder"):
        control_frames(read(run.path))


def test_without_figures_the_timeline_says_when_the_faults_were(run: RunFolder) -> None:
    (run.path / "metrics.json").unlink()
    found = control_frames(read(run.path))
    assert (found.comments, found.gaps) == (1, ())
    (run.path / "events.jsonl").unlink()
    found = control_frames(read(run.path))
    assert found.comments == 0
    assert "no fault is known" in found.gaps[0]


def test_a_name_of_anybody_is_escaped(run: RunFolder) -> None:
    metrics = json.loads((run.path / "metrics.json").read_text())
    for edge in metrics["edges"]:
        edge["edge"]["fault"] = "\x1b[31m\n" + "x" * 10_000
    (run.path / "metrics.json").write_text(json.dumps(metrics))
    found = control_frames(read(run.path))
    assert b"\x1b" not in found.file
    assert len(found.file) < 5000
