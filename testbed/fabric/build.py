"""From a specification to a fabric: pick the architecture, build, check the port budgets."""

from __future__ import annotations

from difflib import get_close_matches

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.buffer_rules import check_buffers
from hpn.testbed.fabric.inventory import check_budgets, check_size
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.rules import contradictions
from hpn.testbed.fabric.spec import FabricSpec


def build(spec: FabricSpec) -> Fabric:
    """Build the fabric of ``spec``. InputError when that is impossible or a switch has too few ports."""
    architecture = ARCHITECTURES.get(spec.architecture)
    if architecture is None:
        near = get_close_matches(spec.architecture, ARCHITECTURES, n=1) or list(ARCHITECTURES)
        raise InputError(f"architecture {spec.architecture!r} is unknown; write {' or '.join(near)}")
    problems = [text for _, text in contradictions(spec)]
    if problems:
        raise InputError(problems)
    check_size(spec)
    fabric = architecture.build(spec)
    check_budgets(fabric)
    check_buffers(fabric)
    return fabric
