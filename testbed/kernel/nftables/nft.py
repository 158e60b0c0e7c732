"""A persistent nftables connection in one namespace, through libnftables: 0.1 ms per transaction and no process.

The library's netlink socket belongs to the namespace it was made in. Interface names are looked up in the namespace
that the thread is in at the time, so ``run`` enters it too (FACTS trap 11).

The library waits for its socket by select(), which aborts the process at descriptor 1,024. So every context sees its
socket under one and the same low number, the *slot*. The sockets are stored under other numbers, and the right one
is put into the slot before each use.

Rules that change in a failover bypass the library, as messages over a socket of our own (``commit``).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.nftables import rules as nftrules
from hpn.testbed.kernel.ns import NetNs

_LIBRARY = "libnftables.so.1"
_FD_SETSIZE = 1024  # sys/select.h
_SIOCGIFINDEX = 0x8933  # linux/sockios.h
_IFNAMSIZ = 16  # linux/if.h, with the terminating zero
_IFREQ = struct.Struct(f"={_IFNAMSIZ}si20x")  # name, index
_SOL_NETLINK, _CAP_ACK, _EXT_ACK = 270, 10, 11  # linux/netlink.h: refusals without a copy of the request
_RECEIVE = 1 << 13


class NftError(OSError):
    """The ruleset was refused as a whole; the message is the library's own, or the kernel's with its errno."""


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise MachineError(f"{_LIBRARY} is missing: apt install libnftables1") from error
    library.nft_ctx_new.argtypes = [ctypes.c_uint32]
    library.nft_ctx_new.restype = ctypes.c_void_p
    library.nft_run_cmd_from_buffer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    for name in ("nft_ctx_buffer_output", "nft_ctx_buffer_error", "nft_ctx_free"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    for name in ("nft_ctx_get_output_buffer", "nft_ctx_get_error_buffer"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
        getattr(library, name).restype = ctypes.c_char_p
    return library


def preload() -> None:
    """Open the library, if there is one, so that no later call opens its files."""
    with suppress(MachineError):
        _library()


class _Slot:
    """One descriptor number below 1,024, bound to /dev/null between uses."""

    def __init__(self) -> None:
        """Reserve the number. MachineError when all low numbers are taken."""
        self._nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._number = fcntl.fcntl(self._nothing, fcntl.F_DUPFD_CLOEXEC, 3)
        if self._number >= _FD_SETSIZE:
            raise MachineError(f"{_LIBRARY} needs a descriptor below {_FD_SETSIZE} and all are taken; close some files")

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Make the slot the lowest free number in the body: the next descriptor that is opened gets it."""
        below = []
        while (low := os.dup(self._nothing)) < self._number:
            below.append(low)
        os.close(low)
        os.close(self._number)
        try:
            yield
        finally:
            for each in below:
                os.close(each)

    def taken_out(self) -> int:
        """Move the slot's socket to another number and return that. MachineError when it is no socket."""
        if not stat.S_ISSOCK(os.fstat(self._number).st_mode):
            raise MachineError(f"{_LIBRARY} of this version opens its socket otherwise than expected; please report it")
        found = os.dup(self._number)
        os.dup2(self._nothing, self._number, inheritable=False)
        return found

    @contextmanager
    def holding(self, descriptor: int) -> Iterator[None]:
        """Put that descriptor into the slot for the body."""
        os.dup2(descriptor, self._number, inheritable=False)
        try:
            yield
        finally:
            os.dup2(self._nothing, self._number, inheritable=False)


def slot() -> _Slot:
    """Return the slot of this process; call this once before a thousand descriptors are open."""
    return _slot_of(os.getpid())


@cache
def _slot_of(_process: int) -> _Slot:
    return _Slot()


class Nft:
    """A libnftables context in one namespace."""

    def __init__(self, ns: NetNs) -> None:
        """Create the context. MachineError when the library is missing."""
        self._ns = ns
        self._library = _library()
        self._slot = slot()
        with ns.entered(), self._slot.emptied():
            self._context: int | None = self._library.nft_ctx_new(0)
        if self._context is None:
            raise MachineError(f"{ns.name}: libnftables cannot start; is nftables in this kernel? see: hpn doctor")
        self._socket = self._slot.taken_out()
        self._library.nft_ctx_buffer_output(self._context)
        self._library.nft_ctx_buffer_error(self._context)
        self._rules: socket.socket | None = None

    def run(self, ruleset: str) -> str:
        """Execute ``ruleset`` (the language of nft(8)) as one atomic transaction; return the output of a 'list'."""
        if self._context is None:
            raise NftError(f"{self._ns.name}: nftables context is closed")
        with self._ns.entered(), self._slot.holding(self._socket):
            failed = self._library.nft_run_cmd_from_buffer(self._context, ruleset.encode()) != 0
        # Reading empties both buffers, so the next run starts clean.
        output = self._library.nft_ctx_get_output_buffer(self._context) or b""
        errors = self._library.nft_ctx_get_error_buffer(self._context) or b""
        if failed:
            raise NftError(f"{self._ns.name}: {errors.decode(errors='replace').strip()}")
        return bytes(output).decode(errors="replace")

    def commit(self, messages: Sequence[bytes]) -> None:
        """Execute a batch of ``nftables.rules`` as one atomic transaction. NftError: nothing is changed."""
        rules = self._own_socket()
        try:
            rules.send(nftrules.batch(messages))
            answers = _waiting(rules)  # the kernel has answered when ``send`` returns
        except OSError as error:
            self._close_own_socket()  # discards answers that have not been read
            raise NftError(error.errno, f"{self._ns.name}: nftables: {error.strerror}") from error
        refusal = nftrules.refusal(answers, len(messages))
        if refusal is not None:
            what = nftrules.describe(messages[refusal.number - 1]) if refusal.number else "transaction"
            raise NftError(refusal.errno, f"{self._ns.name}: {what}: {refusal.words or os.strerror(refusal.errno)}")

    def index_of(self, interface: str) -> int:
        """Return the current index of an interface in the namespace. NftError (ENODEV) if it does not exist."""
        own, name = self._own_socket(), interface.encode()
        try:
            if len(name) >= _IFNAMSIZ:
                raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
            found = fcntl.ioctl(own, _SIOCGIFINDEX, _IFREQ.pack(name, 0))
        except OSError as error:
            raise NftError(error.errno, f"{self._ns.name}: {interface}: {error.strerror}") from error
        return int(_IFREQ.unpack(found)[1])

    def _own_socket(self) -> socket.socket:
        if self._context is None:
            raise NftError(f"{self._ns.name}: nftables context is closed")
        if self._rules is None:
            made = self._ns.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, nftrules.NETLINK_NETFILTER)
            made.bind((0, 0))
            for option in (_CAP_ACK, _EXT_ACK):
                made.setsockopt(_SOL_NETLINK, option, 1)
            self._rules = made
        return self._rules

    def close(self) -> None:
        """Free the context; the rules stay in the kernel."""
        self._close_own_socket()
        if self._context is not None:
            with self._slot.holding(self._socket):
                self._library.nft_ctx_free(self._context)
            os.close(self._socket)
            self._context = None

    def _close_own_socket(self) -> None:
        if self._rules is not None:
            self._rules.close()
            self._rules = None


def _waiting(own: socket.socket) -> list[bytes]:
    """Return every datagram that waits to be read. OSError (ENOBUFS) when the kernel had to drop some."""
    found: list[bytes] = []
    while True:
        try:
            found.append(own.recv(_RECEIVE, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return found
