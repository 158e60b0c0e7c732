"""A drill seen from outside its sandbox: which signals end it."""

from __future__ import annotations

import signal

from scenarios.run import session


def test_what_nohup_ignores_does_not_end_a_drill() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with session._InterruptOnce():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
