"""Kernel tests run whole inside a throw-away sandbox: whatever they make vanishes with it. Guests come last."""

from __future__ import annotations

import asyncio
import faulthandler
import inspect
import os
import pickle
import signal
import traceback
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process import sandbox

# nohup has SIGHUP ignored, and so would every command that a test starts to send it SIGHUP.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Tests call tc, insmod, ... by name, and only an administrator's PATH has where they lie.
os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"))

# CI repeats the same examples, so that a change is what turns it red; everywhere else the search goes on.
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "search")

_GUEST_MB = 2048
"""What a guest of the tests takes at most, QEMU's own memory included."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put guests last, as they take minutes and what is quick shall have failed by then; behind them the extras.

    Among guests the files that take longest begin first.
    """
    items.sort(key=lambda item: (_is_guest(item), _has(item, "extra"), not _has(item, "long")))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip guests where there is no memory for one; whether it can boot otherwise each test asks its engine."""
    free_mb = _available_mb() if _is_guest(item) else _GUEST_MB
    if free_mb < _GUEST_MB:
        pytest.skip(f"a guest needs {_GUEST_MB} MB of memory and {free_mb} MB are free")


def _is_guest(item: pytest.Item) -> bool:
    return _has(item, "guest")


def _has(item: pytest.Item, marker: str) -> bool:
    return item.get_closest_marker(marker) is not None


def _available_mb() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) >> 10
    return 0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Run every test, coroutines to their end; one marked ``kernel`` in a forked sandbox, whose outcome is its own."""
    if pyfuncitem.get_closest_marker("kernel") is None:
        _carry_out(pyfuncitem)
    else:
        _in_sandbox(pyfuncitem)
    return True


def _carry_out(item: pytest.Function) -> None:
    """Call a test function; what it returns must be nothing more to run, or it would pass without having run."""
    result = item.obj(**{name: item.funcargs[name] for name in item._fixtureinfo.argnames})
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    if result is not None:
        pytest.fail(f"{item.name} returned {result!r}: nobody runs that", pytrace=False)


def _in_sandbox(item: pytest.Function) -> None:
    reader, writer = os.pipe()

    def body() -> int:
        faulthandler.cancel_dump_traceback_later()
        try:
            _carry_out(item)
        except pytest.skip.Exception as skipped:
            os.write(writer, pickle.dumps(("skip", str(skipped))))
        except BaseException:  # noqa: BLE001 - the test failed: its traceback is the answer
            text = traceback.format_exc().encode(errors="replace")[-60_000:].decode(errors="replace")
            os.write(writer, pickle.dumps(("fail", text)))
        else:
            os.write(writer, pickle.dumps(("pass", "")))
        return 0

    try:
        box = sandbox.spawn(body)
    except MachineError as error:
        os.close(writer)
        os.close(reader)
        pytest.skip(f"no sandbox here: {error}")
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    box.wait()
    kind, text = pickle.loads(answer) if answer else ("fail", "the sandbox died without an answer")
    if kind == "skip":
        pytest.skip(text)
    if kind == "fail":
        pytest.fail(text, pytrace=False)
