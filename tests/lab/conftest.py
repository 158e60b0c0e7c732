"""What some tests of labs need of the kernel."""

from __future__ import annotations

import pytest

from hpn.testbed.doctor import probe_kernel


@pytest.fixture
def netem() -> None:
    """Skip without it; asked ahead of the test, for pyroute2 has an event loop of its own."""
    if not probe_kernel()["netem"]:
        pytest.skip("this kernel has no netem")
