"""A worker process as the supervisor sees it: whatever goes wrong at its end, who waits for that end is told."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from hpn.traffic.workers import process
from hpn.traffic.workers.messages import Message
from hpn.traffic.workers.process import WorkerProcess

_SOON_S = 20.0


class _Owner:
    """Notes why its worker ended; hears messages by ``heard``."""

    def __init__(self) -> None:
        self.died: list[str] = []

    def heard(self, _worker: int, _message: Message) -> None:
        """A message that fits."""

    def start(self, out: Path) -> WorkerProcess:
        worker = "hpn.traffic.streams.worker"
        return WorkerProcess(worker, 0, out, (), self.heard, lambda _index, why: self.died.append(why))


class _Choosy(_Owner):
    def heard(self, _worker: int, _message: Message) -> None:
        raise ValueError("an unexpected message")


async def test_a_worker_whose_log_is_gone_is_seen_to_end(tmp_path: Path) -> None:
    out, owner = tmp_path / "run", _Owner()
    out.mkdir()
    worker = owner.start(out)
    shutil.rmtree(out)
    await asyncio.wait_for(worker.kill(), _SOON_S)
    assert worker.pid is None
    assert len(owner.died) == 1
    assert f"its log is lost ({out / 'worker-0.log'}: No such file or directory)" in owner.died[0]


async def test_a_worker_whose_last_message_fits_nowhere_is_seen_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [b"", b"its last message"]
    monkeypatch.setattr(process, "_receive", lambda _control: left.pop())
    unforeseen: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unforeseen.append(context["exception"]))
    owner = _Choosy()
    worker = owner.start(tmp_path)
    monkeypatch.setattr(worker._decoder, "feed", lambda _data: [Message()])
    await asyncio.wait_for(worker.kill(), _SOON_S)
    assert worker.pid is None
    assert len(owner.died) == 1
    assert [str(each) for each in unforeseen] == ["an unexpected message"]


async def test_who_no_longer_waits_for_a_worker_keeps_nobody_else_from_it(tmp_path: Path) -> None:
    owner = _Owner()
    worker = owner.start(tmp_path)
    first = asyncio.ensure_future(worker.kill())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait_for(worker.kill(), _SOON_S)
    assert worker.pid is None
    assert len(owner.died) == 1, "it was heard to end"
