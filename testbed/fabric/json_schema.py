"""JSON Schema of a topology file, for editors: ``hpn topology schema``. Pure.

Changes when the model of a topology file changes. Only the loader checks combinations of keys and port budgets.
"""

from __future__ import annotations

from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.load import TopologyFile
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.files.json_schema import Parts, Schema


def topology_schema() -> Schema:
    """Return the schema of a topology file, with all known presets, architectures, ..., plug-ins included."""
    parts = Parts()
    return parts.file(topology_mapping(parts), "a topology of hpn")


def topology_mapping(parts: Parts) -> Schema:
    """Return the schema of a topology's keys, for a file of its own or for embedding in another file."""
    mapping = parts.of(TopologyFile)
    mapping["description"] = "a preset and what differs from it, or all keys"
    mapping["properties"] |= {
        key: {"enum": list(words), "description": mapping["properties"][key]["description"]}
        for key, words in (("preset", PRESETS), ("architecture", ARCHITECTURES))
    }
    return mapping
