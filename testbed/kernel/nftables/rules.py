"""nftables rules of a netdev table as nfnetlink messages: chains, expressions and the batch that replaces them. Pure.

Rules that change in a failover are encoded here instead of as libnftables' text. Before each transaction the library
reads all tables, chains, sets and objects from the kernel. It also reads all interfaces, under RTNL, which is
contended then. Its listing is the reference for these bytes in the tests.
Layouts: linux/netfilter/nfnetlink.h (nfgenmsg, batches), linux/netfilter/nf_tables.h (NFT_*, NFTA_*).
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from hpn.testbed.kernel.rtnetlink import nlmsg, rtnl

NETLINK_NETFILTER = 12

_SUBSYSTEM = 10  # NFNL_SUBSYS_NFTABLES
_BATCH_BEGIN, _BATCH_END = 16, 17  # NFNL_MSG_*
_NEW_RULE, _DELETE_RULE = _SUBSYSTEM << 8 | 6, _SUBSYSTEM << 8 | 8  # NFT_MSG_*
_NETDEV = 5  # NFPROTO_NETDEV
_CREATE, _APPEND = 0x400, 0x800  # NLM_F_*
_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_FAMILY = struct.Struct("!BBH")  # nfgenmsg: family, version, resource
_WORD = struct.Struct("!I")
_NESTED = 0x8000  # NLA_F_NESTED
_TABLE, _CHAIN, _EXPRESSIONS = 1, 2, 4  # NFTA_RULE_*
_ELEMENT = 1  # NFTA_LIST_ELEM
_NAME, _DATA = 1, 2  # NFTA_EXPR_*
_EQUAL = 0  # NFT_CMP_EQ
_VERDICT = 0  # NFT_REG_VERDICT
_ACCEPT = 1  # NF_ACCEPT

ARPHRD_ETHER = 1


class Meta(IntEnum):
    """Packet metadata (NFT_META_*)."""

    PROTOCOL = 1  # Ethertype, two bytes in network order
    IIF = 4  # index of the ingress interface, a word in host order
    IIFTYPE = 8  # ARPHRD_*, two bytes in host order
    L4PROTO = 16  # one byte


class Base(IntEnum):
    """The header that an offset counts from (NFT_PAYLOAD_*)."""

    LINK = 0
    NETWORK = 1
    TRANSPORT = 2


def load_meta(key: Meta, register: int) -> bytes:
    """Load metadata into the register (a number of NFT_REG_* or NFT_REG32_*)."""
    return _expression("meta", _word(2, key) + _word(1, register))


def load(base: Base, offset: int, size: int, register: int) -> bytes:
    """Load ``size`` bytes of the packet into the register and those that follow."""
    return _expression("payload", _word(1, register) + _word(2, base) + _word(3, offset) + _word(4, size))


def equal(register: int, value: bytes) -> bytes:
    """Continue with the rule only if the register holds ``value``."""
    return _expression("cmp", _word(1, register) + _word(2, _EQUAL) + _nested(3, rtnl.attribute(1, value)))


def jhash(source: int, size: int, modulus: int, seed: int, register: int) -> bytes:
    """Store Jenkins' hash of the ``size`` bytes from register ``source`` on, modulo ``modulus``, in ``register``."""
    words = ((1, source), (2, register), (3, size), (4, modulus), (5, seed), (6, 0), (7, 0))  # offset 0, jenkins
    return _expression("hash", b"".join(_word(kind, value) for kind, value in words))


def forward(ifindex: int) -> bytes:
    """Send the packet out of that interface; it is not processed any further here."""
    return _interface(ifindex) + _expression("fwd", _word(1, 1))


def duplicate(ifindex: int) -> bytes:
    """Send a copy of the packet out of that interface."""
    return _interface(ifindex) + _expression("dup", _word(2, 1))


def accept() -> bytes:
    """Accept the packet."""
    verdict = _nested(2, _nested(2, _word(1, _ACCEPT)))  # NFTA_IMMEDIATE_DATA { NFTA_DATA_VERDICT { CODE } }
    return _expression("immediate", _word(1, _VERDICT) + verdict)


def ethertype(kind: int) -> bytes:
    """Continue with the rule only for such Ethernet frames: ``ether type`` of nft(8)."""
    ethernet = load_meta(Meta.IIFTYPE, 1) + equal(1, struct.pack("=H", ARPHRD_ETHER))
    return ethernet + load(Base.LINK, 12, 2, 1) + equal(1, kind.to_bytes(2, "big"))


@dataclass(frozen=True)
class Chain:
    """A chain of a netdev table."""

    table: str
    name: str

    def flush(self) -> bytes:
        """Return the message that removes all rules."""
        return rtnl.message(_DELETE_RULE, 0, self._names)

    def append(self, expressions: bytes) -> bytes:
        """Return the message that appends a rule."""
        return rtnl.message(_NEW_RULE, _CREATE | _APPEND, self._names + _nested(_EXPRESSIONS, expressions))

    @cached_property
    def _names(self) -> bytes:
        names = ((_TABLE, self.table), (_CHAIN, self.name))
        return _FAMILY.pack(_NETDEV, 0, 0) + b"".join(
            rtnl.attribute(kind, text.encode() + b"\0") for kind, text in names
        )


def batch(messages: Sequence[bytes]) -> bytes:
    """Return the transaction of all messages, to be sent at once; numbered from 1, the last requests an answer."""
    numbered = [
        nlmsg.renumber(message, nlmsg.flags_of(message) | (rtnl.NLM_F_ACK if number == len(messages) else 0), number)
        for number, message in enumerate(messages, 1)
    ]
    edges = (_edge(_BATCH_BEGIN, 0), _edge(_BATCH_END, len(messages) + 1))
    return b"".join((edges[0], *numbered, edges[1]))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Refusal of a batch: errno, the kernel's explanation or '', the number of the message (0: the whole batch)."""

    errno: int
    words: str
    number: int


def refusal(answers: Iterable[bytes], messages: int) -> Refusal | None:
    """Return the refusal in the kernel's answers (datagrams) to a batch of ``messages``; None on success.

    The first refusal counts, that of the earliest request. A missing answer is a refusal too (EPROTO).
    """
    acknowledged = False
    for datagram in answers:
        for kind, number, flags, body in nlmsg.split(datagram):
            if kind != rtnl.NLMSG_ERROR:
                continue
            code = -struct.unpack_from("=i", body)[0]
            if code:
                return Refusal(code, nlmsg.extended_ack(body, flags), number if number <= messages else 0)
            acknowledged |= number == messages
    return None if acknowledged else Refusal(errno.EPROTO, "the kernel did not answer", 0)


def describe(message: bytes) -> str:
    """Describe a request for error messages: 'add rule netdev lag_bond0 tx'."""
    what = "flush chain" if struct.unpack_from("=H", message, 4)[0] == _DELETE_RULE else "add rule"
    told = nlmsg.attributes(message[_HEADER.size + _FAMILY.size :])
    names = (told[kind].rstrip(b"\0").decode() for kind in (_TABLE, _CHAIN))
    return " ".join((what, "netdev", *names))


def _edge(kind: int, number: int) -> bytes:
    return _HEADER.pack(_HEADER.size + _FAMILY.size, kind, rtnl.NLM_F_REQUEST, number, 0) + _FAMILY.pack(
        0, 0, _SUBSYSTEM
    )


def _interface(ifindex: int) -> bytes:
    return _expression("immediate", _word(1, 1) + _nested(2, rtnl.attribute(1, struct.pack("=I", ifindex))))


def _expression(name: str, data: bytes) -> bytes:
    return _nested(_ELEMENT, rtnl.attribute(_NAME, name.encode() + b"\0") + _nested(_DATA, data))


def _word(kind: int, value: int) -> bytes:
    return rtnl.attribute(kind, _WORD.pack(value))


def _nested(kind: int, value: bytes) -> bytes:
    return rtnl.attribute(kind | _NESTED, value)
