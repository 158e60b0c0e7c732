"""Named fabrics: a topology for every size, each with one line saying what it is good for.

Each architecture brings its own; here they are found by name, those of the first architecture first.
"""

from __future__ import annotations

from hpn.testbed.fabric.architectures import ARCHITECTURES

PRESETS = ARCHITECTURES.presets
