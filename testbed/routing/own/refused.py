"""Errors for things that hpn does not do to a switch that it did not configure."""

from __future__ import annotations

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.model import Node
from hpn.testbed.fabric.wired.config_words import SwitchConfig


def no_drain(node: Node, config: SwitchConfig) -> MachineError:
    """Return the error for a drain."""
    return MachineError(f"{node.name} runs {config.file}, which hpn does not change: it cannot be drained")
