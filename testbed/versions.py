"""The versions of hpn and of Mininet, as their packages say.

Found when this is imported, which a guest does before its clock counts: how many files it takes depends on where they
lie, and in virtual time opening a file moves the clock.
"""

from __future__ import annotations

from importlib.metadata import version

HPN = version("hpn")
MININET = version("mininet")
