"""Clients of ``hpn up --metrics`` that misbehave: they are in no log, and not in what ``hpn ls`` says of the lab."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.product.hpn import Hpn, end_what_is_left, pids_of, skip_without_sandbox, until
from tests.product.test_metrics import scraped, up
from tests.product.test_watch import SMALL

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
_DROPPED_WITHIN_S = 30.0


@pytest.fixture
def hpn(tmp_path: Path) -> Iterator[Hpn]:
    skip_without_sandbox()
    made = Hpn(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    yield made
    end_what_is_left(made)


def _reset(port: int, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        with suppress(ConnectionError):
            client.sendall(said)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _drip(port: int, dropped_after: list[float]) -> None:
    """A request whose every byte comes a while after the one before; when the connection ended."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client, suppress(ConnectionError):
        client.settimeout(0.5)
        while time.monotonic() - began < _DROPPED_WITHIN_S:
            client.send(b"G")
            with suppress(TimeoutError):
                if not client.recv(1):
                    break
        else:
            return
    dropped_after.append(time.monotonic() - began)


def test_resets_by_the_thousand_and_a_drip_are_no_news_of_the_lab(hpn: Hpn) -> None:
    url = up(hpn)
    port = urlsplit(url).port or 0
    log = hpn.state / "labs" / "small" / "lab.log"
    dropped_after: list[float] = []
    dripping = threading.Thread(target=_drip, args=(port, dropped_after))
    dripping.start()
    for _ in range(400):
        for said in (b"", b"GET /metr", b"GET /nothing HTTP/1.1\r\n\r\n"):
            _reset(port, said)
    _reset(port, b"GET /metrics HTTP/1.1\r\n\r\n")
    dripping.join()
    assert dropped_after, f"one that drips was never dropped within {_DROPPED_WITHIN_S:g} s"
    assert any(name == "hpn_lab_info" for name, _ in scraped(url))
    assert log.read_bytes() == b""
    assert [lab["reason"] for lab in hpn.labs()] == [""]
    os.kill(next(pid for pid in pids_of(hpn.state, "bird")), signal.SIGKILL)
    until(lambda: "BIRD" in str(hpn.labs()[0]["reason"]), "ls names the daemon that was lost")
    told = hpn.labs()[0]["reason"]
    for _ in range(100):
        _reset(port, b"GET /metr")
    assert any(name == "hpn_lab_info" for name, _ in scraped(url))
    assert hpn.labs()[0]["reason"] == told
