"""Which fabrics each BGP daemon can carry; how it is run is said in ``testbed.routing.daemons``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from testbed.fabric.architectures.architecture import Problem, nothing_more
from testbed.fabric.spec import FabricSpec

RULES: Mapping[str, Callable[[FabricSpec], Iterable[Problem]]] = {"bird": nothing_more}
"""By the daemon's name in topology files: what is wrong with a specification for it."""
