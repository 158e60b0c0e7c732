"""JSON Schema of a suite file, for editors: ``hpn ci schema``. Pure.

Changes when another model reads a suite file. Only the loader checks that the named drills fit together.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpn.scenarios.batch.suite.suite import EVERY, BlockSection, SuiteFile
from hpn.scenarios.drill import catalogue
from hpn.testbed.files.json_schema import PATH, Parts, Schema


def suite_schema(engines: Iterable[str]) -> Schema:
    """Return the schema of a suite file that may name these ``engines`` and the drills of the library."""
    parts = Parts()
    top, block = parts.of(SuiteFile), parts.of(BlockSection)
    file = {"type": "string", "pattern": PATH, "description": "a drill file, beside the suite"}
    block["properties"]["drills"]["items"] = {"anyOf": [{"enum": [EVERY, *catalogue.names()]}, file]}
    block["properties"]["engines"]["items"] = {"enum": list(engines)}
    top["properties"]["runs"]["items"] = block
    parts.definitions.pop(BlockSection.__name__, None)  # it is inlined
    return parts.file(top, "a suite of hpn")
