"""Division of data into pieces. PURE."""

from __future__ import annotations

import itertools


def split(size_bytes: int, parts: int, path_mtu: int) -> tuple[int, ...]:
    """Split ``size_bytes`` into ``parts`` whose sizes differ by one packet at most; all but the last packet are full.

    If there are fewer packets than parts, some parts have 0 bytes.
    """
    packets = -(-size_bytes // path_mtu)
    edges = [min(part * packets // parts * path_mtu, size_bytes) for part in range(parts + 1)]
    return tuple(end - begin for begin, end in itertools.pairwise(edges))


def split_twice(size_bytes: int, parts: int, slices: int, path_mtu: int) -> tuple[int, ...]:
    """Split into parts, and each of those into slices: part p's slice s is the ``p * slices + s``-th."""
    return tuple(piece for part in split(size_bytes, parts, path_mtu) for piece in split(part, slices, path_mtu))
