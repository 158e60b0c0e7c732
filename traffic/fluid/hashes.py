"""The kernel's choice among equal next hops for a forwarded packet, computed. PURE.

Linux, fib_multipath_hash_policy 3 with the fields of ``testbed.routing.ecmp`` and the switch's own seed
(net/ipv4/route.c, fib_multipath_custom_hash_skb). First SipHash-2-4 over struct flow_keys, in which both addresses and
both ports are in ascending order (net/core/flow_dissector.c, __flow_hash_consistentify). Then jhash with the hash of an
inner header, which is 0 here. Last the upper bounds of the next hops (net/ipv4/fib_semantics.c, fib_rebalance and
fib_select_multipath). Tests compare it with a kernel.

All functions take and return arrays of uint64, one element for each packet; they wrap as the kernel's integers do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
_Half = NDArray[np.uint32]
_State = tuple[Words, Words, Words, Words]

_SIPHASH = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_UDP = 17
_KEYS_BYTES = 48  # of struct flow_keys, as far as it is hashed with IPv4 addresses: seven words and a half, padded
_JHASH_INITIAL = 0xDEADBEEF + 8
_FINAL = (14, 11, 25, 16, 4, 14, 24)


def words(values: Iterable[int]) -> Words:
    """Return numbers as the arrays that all functions here take."""
    return np.fromiter(values, dtype=np.uint64)


def addresses(ips: Iterable[str]) -> Words:
    """Return IPv4 addresses as ``multipath_hash`` takes them."""
    return words(int(IPv4Address(ip)) for ip in ips)


def multipath_hash(seed: Words, src: Words, dst: Words, sport: Words, dport: Words) -> Words:
    """Return the 31-bit hash of UDP packets from ``src`` and ``sport`` to ``dst`` and ``dport``, by switch ``seed``.

    ``seed``: net.ipv4.fib_multipath_hash_seed, 32 bits and not 0 (for 0 the kernel draws its own). The result is that
    of a little-endian kernel, as on x86 and ARM.
    """
    one_ip, other_ip = _swapped(src, 4), _swapped(dst, 4)
    one_port, other_port = _swapped(sport, 2), _swapped(dport, 2)
    low_port, high_port = np.minimum(one_port, other_port), np.maximum(one_port, other_port)
    nothing = np.zeros_like(seed)
    keys = (
        nothing + _word(_UDP << 16),  # n_proto, ip_proto; tags
        nothing,  # vlan
        nothing,  # cvlan
        low_port << _word(32) | high_port << _word(48),  # keyid; ports
        np.minimum(one_ip, other_ip) << _word(32),  # icmp; the first address
        np.maximum(one_ip, other_ip),
    )
    key = seed << _word(32) | seed
    found = (siphash(key, key, keys, _KEYS_BYTES) & _word(0xFFFFFFFF)).astype(np.uint32)
    return _jhash(np.maximum(found, np.uint32(1))).astype(np.uint64) >> _word(1)


def chosen(found: Words, hops: Words) -> Words:
    """Return the index among ``hops`` equal next hops for a hash of ``multipath_hash``.

    The upper bound of next hop i of n is DIV_ROUND_CLOSEST((i + 1) << 31, n) - 1. The first next hop whose bound is not
    below the hash is taken.
    """
    near = (found * hops) >> _word(31)  # its bound may have been rounded down to below the hash
    beyond = (((near + _word(1)) << _word(31)) + hops // _word(2)) // hops
    return near + (found >= beyond).astype(np.uint64)


def siphash(key0: Words, key1: Words, message: Sequence[Words], size_bytes: int) -> Words:
    """Return SipHash-2-4 (Aumasson and Bernstein, 2012) of messages of ``size_bytes``, in words of eight bytes.

    Words are little-endian; the last word may be partial.
    """
    keys = (key0, key1, key0, key1)
    v0, v1, v2, v3 = (key ^ _word(constant) for key, constant in zip(keys, _SIPHASH, strict=True))
    whole = size_bytes // 8
    last = message[whole] if whole < len(message) else np.zeros_like(key0)
    for word in (*message[:whole], last | _word((size_bytes & 0xFF) << 56)):
        v0, v1, v2, v3 = _rounds(2, (v0, v1, v2, v3 ^ word))
        v0 = v0 ^ word
    v0, v1, v2, v3 = _rounds(4, (v0, v1, v2 ^ _word(0xFF), v3))
    return v0 ^ v1 ^ v2 ^ v3


def _rounds(times: int, state: _State) -> _State:
    v0, v1, v2, v3 = state
    for _ in range(times):
        v0 = v0 + v1
        v1 = _rotate(v1, 13) ^ v0
        v0 = _rotate(v0, 32)
        v2 = v2 + v3
        v3 = _rotate(v3, 16) ^ v2
        v0 = v0 + v3
        v3 = _rotate(v3, 21) ^ v0
        v2 = v2 + v1
        v1 = _rotate(v1, 17) ^ v2
        v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


def _jhash(first: _Half) -> _Half:
    """Return jhash_2words(first, 0, 0), the array form of ``testbed.lag.jhash``."""
    other = first + np.uint32(_JHASH_INITIAL)
    mixed = read = np.full_like(first, _JHASH_INITIAL)
    for bits in _FINAL:  # each step mixes one of the three words with the one that was mixed before it
        new = (mixed ^ read) - (read << np.uint32(bits) | read >> np.uint32(32 - bits))
        mixed, read, other = other, new, read
    return read


def _word(value: int) -> np.uint64:
    return np.uint64(value)


def _rotate(word: Words, bits: int) -> Words:
    return word << _word(bits) | word >> _word(64 - bits)


def _swapped(word: Words, size: int) -> Words:
    """Return ``word``, of ``size`` bytes on the wire, as a little-endian machine reads it."""
    return word.byteswap() >> _word(64 - 8 * size)
