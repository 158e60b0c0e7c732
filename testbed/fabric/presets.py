"""Named fabrics: a topology for every size, each with one line about its purpose.

Each architecture defines its own; here they are listed by name, those of the first architecture first.
"""

from __future__ import annotations

from hpn.testbed.fabric.architectures import ARCHITECTURES

PRESETS = ARCHITECTURES.presets
