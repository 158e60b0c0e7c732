"""Colours of planes, for paper and dark screens. Red and green are taken: what is down, and a flow's path."""

from __future__ import annotations

ON_PAPER = ("#0b5cad", "#9a4a00", "#6b3fa0", "#1f7a74", "#8a6d00", "#a1286a", "#3d4db7", "#5c5145")
ON_DARK = ("#6cb2ff", "#f0a35e", "#c39bff", "#5fd0c5", "#d8bb3c", "#ff8ac4", "#9fb0ff", "#c2b3a3")


def plane_rules(colours: tuple[str, ...]) -> str:
    """Return the style rules of planes, a line each."""
    return "\n".join(f".hpn-fabric .plane{plane}{{stroke:{colour}}}" for plane, colour in enumerate(colours))
