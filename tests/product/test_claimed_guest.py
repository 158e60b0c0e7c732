"""A run folder that vanishes ends its run in a guest by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.product.hpn import skip_without_sandbox, skip_without_virtual_time
from tests.product.test_claimed import VIRTUAL, vanishes

pytestmark = pytest.mark.guest


def test_a_folder_that_vanishes_ends_its_run_in_a_guest_by_name(tmp_path: Path) -> None:
    skip_without_sandbox()
    skip_without_virtual_time()
    vanishes(tmp_path, *VIRTUAL)
