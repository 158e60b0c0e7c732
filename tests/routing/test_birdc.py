"""BIRD's control socket: real answers, split anywhere; hostile ones refused."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.routing.bird.control import BirdError, Reply, ReplyParser, command_now
from tests.routing.birdwords import BgpSession, BirdRoute, parse_routes, parse_sessions

GOLDEN = Path(__file__).parent / "golden"
PROTOCOLS = (GOLDEN / "show-protocols.txt").read_text()
ROUTES = (GOLDEN / "show-route.txt").read_text()


def parse(text: str) -> Reply:
    parser = ReplyParser()
    replies = [parser.feed(line) for line in text.splitlines()]
    assert replies[:-1] == [None] * (len(replies) - 1)
    assert replies[-1] is not None
    return replies[-1]


def test_sessions_are_read_out_of_show_protocols() -> None:
    assert parse_sessions(parse(PROTOCOLS).lines) == [
        BgpSession("up0", "Established", "03:29:09.168", "172.16.0.1", 65200, "p0.a0.0", "Established"),
        BgpSession(
            "up1", "Idle", "2026-11-21", "172.16.0.3", 65200, "p0.a0.1", "Idle          Received: Hold timer expired"
        ),
    ]


def test_routes_are_read_out_of_show_route() -> None:
    assert parse_routes(parse(ROUTES).lines) == [
        BirdRoute("10.0.0.1/32", "unicast", "s0r0t0", True, (("172.16.0.0", "s0r0t0"),), (65200, 65100)),
        BirdRoute("10.0.0.1/32", "unicast", "s0r0t1", False, (("172.16.0.4", "s0r0t1"),), (65100,)),
        BirdRoute("10.0.0.0/24", "blackhole", "subnets", True, (), ()),
    ]


@given(st.lists(st.tuples(st.sampled_from([1002, 1006, 1007, 1008, 1012]), st.text(max_size=60)), max_size=20))
def test_no_text_breaks_the_readers(lines: list[tuple[int, str]]) -> None:
    assert len(parse_sessions(lines)) <= len(lines)
    assert len(parse_routes(lines)) <= len(lines)


@given(st.text(max_size=40))
def test_a_line_is_a_reply_a_part_or_refused(line: str) -> None:
    try:
        reply = ReplyParser().feed(line)
    except BirdError:
        return
    assert reply is None or line[:4] == f"{reply.code:04}"


def ask(tmp_path: Path, *chunks: bytes, timeout_s: float = 2) -> Reply:
    """Ask a server that greets with the first chunk, sends the others when asked and hangs up; or says nothing."""
    path = tmp_path / "ctl"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            with listening.accept()[0] as connection, suppress(OSError):
                connection.sendall(b"".join(chunks[:1]))
                connection.recv(100)
                for chunk in chunks[1:]:
                    connection.sendall(chunk)
                if not chunks:
                    connection.recv(100)  # until the client has given up

        server = threading.Thread(target=serve)
        server.start()
        try:
            return command_now(path, "restart up0", timeout_s)
        finally:
            server.join()


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_an_answer_may_come_in_pieces(tmp_path: Path, size: int) -> None:
    data = b"0001 BIRD 2.0.12 ready.\n" + PROTOCOLS.encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert ask(tmp_path, *pieces).lines == parse(PROTOCOLS).lines


@pytest.mark.parametrize(
    ("chunks", "complaint"),
    [
        ([b""], "closed the connection"),
        ([b"0001 BIRD ready\n", b"1002-half an ans"], "closed the connection|reset"),
        ([b"HTTP/1.1 200 OK\r\n"], "not an answer of BIRD"),
        ([b" begins with a continuation\n"], "starts in the middle"),
        ([b"0001 ready\n9001 syntax error\n"], "syntax error|reset"),
        ([b"\xff\xfe\n"], "not an answer"),
        ([b"x" * (1 << 17)], "line without end"),
    ],
)
def test_hostile_or_broken_answers_are_one_line_errors(tmp_path: Path, chunks: Sequence[bytes], complaint: str) -> None:
    with pytest.raises(BirdError, match=complaint):
        ask(tmp_path, *chunks)


def test_the_blocking_way_brings_the_same_answer(tmp_path: Path) -> None:
    reply = ask(tmp_path, b"0001 BIRD 2.0.12 ready.\n", b"0009-up0: restarted\n0000 \n")
    assert reply.lines[0] == (9, "up0: restarted")


@pytest.mark.parametrize(
    ("chunks", "complaint"),
    [
        ((), "did not carry out 'restart up0': timed out"),
        ((b"0001 ready\n",), "in the middle of an answer"),
        ((b"0001 ready\n", b"9001 syntax error\n"), "refused 'restart up0': syntax error"),
        ((b"x" * (1 << 17),), "a line without end"),
    ],
)
def test_the_blocking_way_ends_in_one_line_errors_too(
    tmp_path: Path, chunks: tuple[bytes, ...], complaint: str
) -> None:
    with pytest.raises(BirdError, match=complaint):
        ask(tmp_path, *chunks, timeout_s=0.2)


def test_nobody_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(BirdError, match="did not carry out 'show status': No such file"):
        command_now(tmp_path / "none", "show status")


def test_a_silent_daemon_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(BirdError, match="did not carry out 'restart up0': timed out"):
        ask(tmp_path, timeout_s=0.05)
