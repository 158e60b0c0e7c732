"""Named fabrics: a topology for every size, each with one line saying what it is good for.

Each architecture brings its own; here they are found by name, those of the first architecture first.
"""

from __future__ import annotations

from itertools import chain

from testbed.entries import Registry
from testbed.fabric.architectures import ARCHITECTURES
from testbed.fabric.architectures.architecture import Preset

PRESETS: Registry[Preset] = Registry(
    "preset",
    lambda preset: preset.name,
    chain.from_iterable(architecture.presets for architecture in ARCHITECTURES.values()),
)
