"""The BGP daemons that a topology may name, ``bgp: {daemon: ...}``, and those of switches with a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from hpn.testbed.entries import Registry
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.fabric.wired.config_words import SwitchConfig
from hpn.testbed.fabric.wired.configs import own_configs
from hpn.testbed.routing.bgp import DaemonKind
from hpn.testbed.routing.bird.daemon import BIRD
from hpn.testbed.routing.frr.daemon import FRR
from hpn.testbed.routing.own import bird, frr

DAEMONS: Registry[DaemonKind] = Registry("BGP daemon", lambda kind: kind.name, (BIRD, FRR), of=DaemonKind)

OWN: Mapping[str, DaemonKind] = {"frr": frr.OWN_FRR, "bird": bird.OWN_BIRD}
"""Kinds for switches with a configuration of their own, by the program that reads it."""

_CHECKS: Mapping[str, Callable[[SwitchConfig, Path], list[str]]] = {"frr": frr.problems, "bird": bird.problems}


def daemon_of(fabric: Fabric, node: Node) -> DaemonKind:
    """Return what runs on a switch: the topology's daemon, or that of the switch's own configuration."""
    own = own_configs(fabric).get(node.name)
    return DAEMONS[fabric.spec.bgp.daemon] if own is None else OWN[own.daemon]


def kinds_of(fabric: Fabric) -> tuple[DaemonKind, ...]:
    """Return every kind that a fabric's switches run, each once."""
    own = {config.daemon for config in own_configs(fabric).values()}
    ours = [DAEMONS[fabric.spec.bgp.daemon]] if len(own_configs(fabric)) < len(fabric.switches) else []
    return (*ours, *(OWN[name] for name in sorted(own)))


def config_problems(fabric: Fabric) -> list[str]:
    """Return what the programs' own checks (vtysh -C, bird -p) find wrong in configurations, by file and line.

    MachineError when a program is missing.
    """
    found = own_configs(fabric)
    if not found:
        return []
    with TemporaryDirectory(prefix="hpn-") as folder:
        return [each for config in found.values() for each in _CHECKS[config.daemon](config, Path(folder))]
