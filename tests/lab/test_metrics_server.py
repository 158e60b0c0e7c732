"""The metrics endpoint and its clients: none stays longer than it may, and none is news of the lab."""

from __future__ import annotations

import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.lab.test_metrics import BROKEN, scrape
from tests.product.hpn import until

server = pytest.importorskip("hpn.testbed.lab.service.metrics.server", reason="prometheus-client is not installed")


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server whose clients have a second."""
    monkeypatch.setattr(server, "WHOLE_S", 1.0)
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    serving = server.Server(listening, lambda: scrape(BROKEN))
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield listening.getsockname()[1]
    serving.shutdown()
    thread.join()
    serving.server_close()


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def _reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def _scraped(port: int) -> str:
    """What is answered; '' when it was hung up on."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            text: bytes = answer.read()
    except OSError:
        return ""
    return text.decode()


def _is_hung_up(client: socket.socket) -> bool:
    """Waits for what the server does: an end, or an answer."""
    try:
        return client.recv(1 << 16) == b""
    except ConnectionError:
        return True


def test_who_drips_a_byte_now_and_then_is_dropped_at_the_deadline(port: int) -> None:
    with _connected(port) as client:
        began = time.monotonic()
        client.settimeout(0.2)
        for byte in b"GET /metrics HTTP/1.1\r\nX-Slow: " + b"a" * 100:
            with suppress(ConnectionError):
                client.send(bytes([byte]))
            try:
                if not client.recv(1):
                    break
            except ConnectionError:
                break
            except TimeoutError:
                continue
        else:
            pytest.fail("it was never dropped")
        assert 0.9 < time.monotonic() - began < 15


def test_only_so_many_are_served_and_the_others_are_hung_up_on_at_once(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "WHOLE_S", 600.0)  # for whom the server has a place
    with ExitStack() as opened:
        for _ in range(server.AT_ONCE):
            opened.enter_context(_connected(port))
        assert _is_hung_up(opened.enter_context(_connected(port)))
    until(lambda: "hpn_lab_info" in _scraped(port), "there is place again")


def test_who_says_nothing_is_dropped_at_the_deadline(port: int) -> None:
    with _connected(port) as client:
        assert _is_hung_up(client)


def test_no_client_leaves_a_word_in_the_log(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither one that resets its connection at any point, nor one that asks for what there is not."""
    ask = b"GET /metrics HTTP/1.1\r\nAccept: %s\r\n\r\n"
    for said in (b"", b"GET /met", b"GET /metrics HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"\0" * 70_000):
        for _ in range(20):
            client = _connected(port)
            with suppress(ConnectionError):
                client.sendall(said)
            _reset(client)
    with _connected(port) as client:
        client.sendall(ask % b"application/openmetrics-text; version=none")
        assert b" 500 " in client.recv(1 << 16).partition(b"\r\n")[0]
    assert "hpn_lab_info" in _scraped(port)
    assert capfd.readouterr() == ("", "")
