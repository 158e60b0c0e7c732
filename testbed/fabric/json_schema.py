"""The shape of a topology file as JSON Schema, for editors: ``hpn topology schema``. Pure.

Changes when a topology file is read by another model. What keys mean together, and whether a switch has the ports,
only the loader checks.
"""

from __future__ import annotations

from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.load import TopologyFile
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.files.json_schema import Parts, Schema


def topology_schema() -> Schema:
    """The schema of a topology file, with the presets, architectures, ... that are known now, plug-ins included."""
    parts = Parts()
    return parts.file(topology_mapping(parts), "a topology of hpn")


def topology_mapping(parts: Parts) -> Schema:
    """The schema of a topology's keys, in a file of its own or in another file."""
    mapping = parts.of(TopologyFile)
    mapping["description"] = "a preset and what differs from it, or all keys"
    mapping["properties"] |= {
        key: {"enum": list(words), "description": mapping["properties"][key]["description"]}
        for key, words in (("preset", PRESETS), ("architecture", ARCHITECTURES))
    }
    return mapping
