"""Linux's jhash() (Bob Jenkins' lookup3, linux/jhash.h) and nftables' use of it, to predict a flow's port."""

from __future__ import annotations

import struct
from functools import cache, lru_cache

_MASK = 0xFFFFFFFF
_INITIAL = 0xDEADBEEF
_REMEMBERED = 1 << 14


@cache
def _words(count: int) -> struct.Struct:
    return struct.Struct(f"={count}I")  # the kernel reads its own byte order


@lru_cache(_REMEMBERED)
def jhash(key: bytes, seed: int) -> int:
    """Return the 32-bit hash of ``key``, whose length must be a multiple of four octets (nftables pads every field).

    It is cached: the ports of thousands of flows are computed several times a second while they run.
    """
    words = list(_words(len(key) // 4).unpack(key))
    a = b = c = (_INITIAL + len(key) + seed) & _MASK
    while len(words) > 3:
        a, b, c = _mix((a + words[0]) & _MASK, (b + words[1]) & _MASK, (c + words[2]) & _MASK)
        del words[:3]
    if not words:
        return c
    words += [0] * (3 - len(words))
    return _final((a + words[0]) & _MASK, (b + words[1]) & _MASK, (c + words[2]) & _MASK)


def nft_jhash(key: bytes, modulus: int, seed: int) -> int:
    """Return 'jhash ... mod ``modulus`` seed ``seed``': the hash scaled to 0 .. modulus - 1 (reciprocal_scale)."""
    return jhash(key, seed) * modulus >> 32


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    a = (a - c & _MASK) ^ _rotate(c, 4)
    c = c + b & _MASK
    b = (b - a & _MASK) ^ _rotate(a, 6)
    a = a + c & _MASK
    c = (c - b & _MASK) ^ _rotate(b, 8)
    b = b + a & _MASK
    a = (a - c & _MASK) ^ _rotate(c, 16)
    c = c + b & _MASK
    b = (b - a & _MASK) ^ _rotate(a, 19)
    a = a + c & _MASK
    c = (c - b & _MASK) ^ _rotate(b, 4)
    b = b + a & _MASK
    return a, b, c


def _final(a: int, b: int, c: int) -> int:
    c = (c ^ b) - _rotate(b, 14) & _MASK
    a = (a ^ c) - _rotate(c, 11) & _MASK
    b = (b ^ a) - _rotate(a, 25) & _MASK
    c = (c ^ b) - _rotate(b, 16) & _MASK
    a = (a ^ c) - _rotate(c, 4) & _MASK
    b = (b ^ a) - _rotate(a, 14) & _MASK
    return (c ^ b) - _rotate(b, 24) & _MASK
