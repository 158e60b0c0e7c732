"""FRR's vty socket: answers however they are cut; refusals and silence are errors."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpn.testbed.routing.frr.daemon import FrrError, command_now


def served(path: Path, answers: Sequence[Sequence[bytes]]) -> list[bytes]:
    """A server of one connection that answers each command with the pieces given; what it is asked."""
    asked: list[bytes] = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)

    def serve() -> None:
        with listener, listener.accept()[0] as connection:
            for pieces in answers:
                command = b""
                while not command.endswith(b"\0"):
                    command += connection.recv(100)
                asked.append(command)
                for piece in pieces:
                    connection.sendall(piece)

    threading.Thread(target=serve, daemon=True).start()
    return asked


OK = b"\0\0\0\0"


def test_the_last_answer_is_given_however_it_is_cut(tmp_path: Path) -> None:
    asked = served(tmp_path / "vty", [[OK], [OK], [b"10.0.0.1", b"/32\n\0", b"\0", b"\0\0"]])
    assert command_now(tmp_path / "vty", ["configure terminal", "show x"]) == "10.0.0.1/32"
    assert asked == [b"enable\0", b"configure terminal\0", b"show x\0"]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([[OK], [b"% Unknown command\n\0\0\0\x02"]], "refused 'clear x': % Unknown command"),
        ([[OK], [b"\0\0\0\x01"]], "refused 'clear x': status 1"),
        ([[OK], [b"half an ans"]], "closed the connection in the middle of its answer to 'clear x'"),
        ([], "did not carry out|closed the connection"),
    ],
)
def test_what_is_no_success_is_an_error(tmp_path: Path, answers: list[list[bytes]], words: str) -> None:
    served(tmp_path / "vty", answers)
    with pytest.raises(FrrError, match=words):
        command_now(tmp_path / "vty", ["clear x"])


def test_who_does_not_listen_or_answer_is_named(tmp_path: Path) -> None:
    with pytest.raises(FrrError, match=f"FRR at {tmp_path}/none did not carry out.*No such file"):
        command_now(tmp_path / "none", ["show x"])
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent"))
        silent.listen(1)
        with pytest.raises(FrrError, match="timed out"):
            command_now(tmp_path / "silent", ["show x"], timeout_s=0.05)
