"""An architecture: one rack, a ToR for each rail and nothing above."""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.architectures.architecture import Architecture, Preset, Problem
from hpn.testbed.fabric.architectures.wiring import NOT_STACKED, ONE_TOR, racks
from hpn.testbed.fabric.builder import Builder
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec


def _build(spec: FabricSpec) -> Fabric:
    builder = Builder(spec)
    racks(builder, tors=1, planes=1)
    return builder.finish(planes=1, rails_meet=spec.rails == 1)


def _contradictions(spec: FabricSpec) -> Iterator[Problem]:
    for key, only in (("segments", 1), ("aggs", 0)):
        given = getattr(spec, key)
        if given != only:
            yield (key,), f"{key} is {given}, but this is one rack; write {only}"


ARCHITECTURES.add(
    Architecture(
        "one-rack",
        "a ToR for each rail, one uplink per NIC, nothing above",
        {"stack": NOT_STACKED, "lacp.port_id_offset": ONE_TOR},
        _build,
        _contradictions,
        cores=False,
        presets=(
            Preset("4 hosts on one ToR", FabricSpec(name="rack", architecture="one-rack", segments=1, hosts=4, aggs=0)),
        ),
    )
)
