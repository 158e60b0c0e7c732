"""Control frames around a run's faults as one capture for Wireshark, with faults as packet comments. Pure.

Changes when another protocol runs in the lab, or a fault is described in another way. The input is the run's captures
(``captures/*.pcapng``, the drill's ``capture`` key); stamps stay CLOCK_MONOTONIC, as in the run's timeline.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.failover.analysis.edge import Edge
from hpn.results.run.drill import AskedDrill
from hpn.results.run.files import content
from hpn.results.run.reading import Run
from hpn.testbed.errors import InputError
from hpn.testbed.events import EventKind
from hpn.testbed.files.document import shorten
from hpn.testbed.files.units import format_duration
from hpn.testbed.kernel.packets import pcapng
from hpn.testbed.kernel.packets.pcapng_reading import Dropped, Frame, Interface, blocks
from hpn.testbed.lag.datapath import ETHERTYPE_PATH_CONTROL
from hpn.testbed.lag.lacpdu import ETHERTYPE_SLOW_PROTOCOLS
from hpn.testbed.versions import HPN

FOLDER = "captures"
_ARP, _IPV4 = 0x0806, 0x0800
_CONTROL_ETHERTYPES = {ETHERTYPE_SLOW_PROTOCOLS, ETHERTYPE_PATH_CONTROL, _ARP}
_ICMP, _TCP, _UDP = 1, 6, 17
_CONTROL_PORTS = {_TCP: {179}, _UDP: {3784, 3785, 4784, 4790}}  # BGP; BFD and its echoes; a stack's sync
_ETHERNET_BYTES, _LEAST_IPV4_BYTES = 14, 20
_DONE = {"inject", "restore"}
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Exported:
    """A capture, and the parts of the run's that it lacks, one line each."""

    file: bytes
    frames: int
    comments: int
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Note:
    """A note about a time."""

    at_ns: int
    text: str


def control_frames(run: Run) -> Exported:
    """Return the run's captures as one file. InputError without captures, or without any frame in them.

    The nearest frame of any kind is retained and gets the fault as a comment, since control frames may be far from a
    cut.
    """
    paths = _captures(run.path)
    gaps: list[str] = []
    interfaces: dict[str, Interface] = {}
    frames: list[Frame] = []
    for path in paths:
        try:
            dropped = _read(path, run.path, interfaces, frames)
        except ValueError as error:
            gaps.append(f"{FOLDER}/{shorten(path.name, quoted=False)}: {error}")
        else:
            if dropped:
                gaps.append(f"{FOLDER}/{shorten(path.name, quoted=False)}: {dropped} frames that the machine lost")
    if not frames:
        why = "; ".join(gaps) or "its captures are empty; capture longer, or other links"
        raise InputError(f"{run.path}: no frame was captured: {why}")
    frames.sort(key=lambda frame: frame.at_ns)
    notes, told = _notes(run)
    comments = _comments(frames, notes)
    wanted = [(frame, comments.get(at, [])) for at, frame in enumerate(frames)]
    kept = [(frame, told_of) for frame, told_of in wanted if told_of or is_control(frame.content)]
    file = b"".join(_blocks(run, interfaces.values(), kept))
    return Exported(file, len(kept), len(notes), (*gaps, *told))


def _captures(folder: Path) -> list[Path]:
    place = folder / FOLDER
    names = sorted(os.listdir(place)) if place.is_dir() else []
    found = [place / name for name in names if name.endswith(".pcapng")]
    if not found:
        raise InputError(
            f"{folder} has no captures; a drill with the key 'capture: {{}}' records them (docs/drills.md), "
            "and hpn capture those of a running lab"
        )
    return found


def _read(path: Path, folder: Path, interfaces: dict[str, Interface], frames: list[Frame]) -> int:
    """Read the frames of one file, and return the number that the capture dropped.

    An interface is identified by its name, in any file. ValueError if the file is truncated.
    """
    numbers: list[int] = []
    names = list(interfaces)
    dropped = 0
    for block in blocks(content(path, folder)):
        if isinstance(block, Interface):
            if block.name not in interfaces:
                interfaces[block.name] = block
                names.append(block.name)
            numbers.append(names.index(block.name))
        elif isinstance(block, Dropped):
            dropped += block.frames
        else:
            frames.append(replace(block, interface=numbers[block.interface]))
    return dropped


def is_control(frame: bytes) -> bool:
    """Return True for frames of LACP, ARP, path control, BGP, BFD, a stack, or ICMP; not for RoCE or clients."""
    kind = int.from_bytes(frame[12:14], "big")
    if kind != _IPV4 or len(frame) < _ETHERNET_BYTES + _LEAST_IPV4_BYTES:
        return kind in _CONTROL_ETHERTYPES
    packet = frame[_ETHERNET_BYTES:]
    protocol, begin = packet[9], (packet[0] & 15) * 4
    if protocol == _ICMP:
        return True
    ports = {int.from_bytes(packet[at : at + 2], "big") for at in (begin, begin + 2)}
    return bool(ports & _CONTROL_PORTS.get(protocol, set()))


def _notes(run: Run) -> tuple[list[_Note], tuple[str, ...]]:
    """Return a note for each edge of a fault, and the reasons if none is known."""
    if run.metrics is not None:
        return [_of_edge(result.edge, run.drill) for result in run.metrics.edges], ()
    events = [event for event in run.events or () if event.kind is EventKind.FAULT and event.what in _DONE]
    if events:
        return [_Note(event.at_ns, f"{event.subject} {event.what}") for event in events], ()
    return [], ("no fault is known: neither metrics nor events can be read",)


def _of_edge(edge: Edge, drill: AskedDrill | None) -> _Note:
    asked = {fault.id: f"{fault.kind} of {fault.target}" for fault in (drill.faults if drill is not None else ())}
    kinds = "; ".join(asked[fault] for fault in edge.faults if fault in asked)
    what = f"{edge.label}{f' ({kinds})' if kinds else ''}"
    links = ", ".join(link.name for link in edge.links[:4]) + (", ..." if len(edge.links) > 4 else "")
    skew = f"injected within {edge.skew_ms:.3f} ms"
    return _Note(edge.inject_before_ns, f"{what}, {skew}{f', on {links}' if links else ''}")


def _comments(frames: Sequence[Frame], notes: Iterable[_Note]) -> dict[int, list[str]]:
    """Return the notes by the frame that is nearest in time."""
    times = [frame.at_ns for frame in frames]
    found: dict[int, list[str]] = {}
    for note in notes:
        after = bisect_left(times, note.at_ns)
        near = min(
            (at for at in (after - 1, after) if 0 <= at < len(times)), key=lambda at: abs(times[at] - note.at_ns)
        )
        apart_ns = times[near] - note.at_ns
        when = f"{format_duration(abs(apart_ns))} {'before' if apart_ns >= 0 else 'after'} this frame"
        found.setdefault(near, []).append(f"fault {shorten(note.text, _LONGEST, quoted=False)}: {when}")
    return found


def _blocks(
    run: Run, interfaces: Iterable[Interface], frames: Iterable[tuple[Frame, Sequence[str]]]
) -> Iterator[bytes]:
    drill = shorten(run.manifest.drill, quoted=False)
    yield pcapng.section(f"hpn {HPN}", f"control frames of {drill}; stamps are CLOCK_MONOTONIC")
    yield from (interface.block for interface in interfaces)
    for each, comments in frames:
        yield pcapng.packet(each.interface, each.at_ns, each.content, each.frame_bytes, each.direction, comments)
