"""A small network for tests: hosts a and b on switch t, c on u, both switches on the spines g and i."""

from __future__ import annotations

S = 10**9
BIN = S // 100
ENDS = {link: (link[0], link[2]) for link in ("a-t", "b-t", "c-u", "t-g", "t-i", "u-g", "u-i")}
ROUTES = (
    ("a", ("a-t", "t-g", "u-g", "c-u")),
    ("a", ("a-t", "t-i", "u-i", "c-u")),
    ("b", ("b-t", "t-g", "u-g", "c-u")),
    ("b", ("b-t", "t-i", "u-i", "c-u")),
    ("a", ("a-t", "b-t")),
    ("b", ("b-t", "a-t")),
    ("c", ("c-u", "u-g", "t-g", "a-t")),
    ("c", ("c-u", "u-i", "t-i", "b-t")),
)
"""Paths of one host each way over two spines, g and i, and within the rack of a and b."""
