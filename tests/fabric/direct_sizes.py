"""Sizes of direct networks, drawn: only such as exist."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st


@st.composite
def direct_sizes(draw: st.DrawFn, name: str) -> dict[str, object]:
    """The keys of a small direct network of that architecture."""
    hosts = {"architecture": name, "hosts": draw(st.integers(1, 2)), "bgp": {"asn": "per-switch"}}
    if name == "dragonfly":
        segments, links = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        return {**hosts, "pods": segments * links + 1, "segments": segments, "global_links": links}
    if name == "slim-fly":
        return {**hosts, "pods": 3, "segments": 6}
    sizes = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3).filter(lambda each: prod(each) <= 16))
    pods = sizes[0] if len(sizes) > 1 and draw(st.booleans()) else 1
    return {**hosts, "pods": pods, "segments": prod(sizes) // pods, "dimensions": sizes}
