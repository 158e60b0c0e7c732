"""nftables through libnftables, kept open in one namespace: a transaction costs 0.1 ms instead of a process.

The library's netlink socket belongs to the namespace it was made in; interface names are looked up in whichever
namespace the thread is in at the time, hence ``run`` enters it too (FACTS trap 11).
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache

from testbed.errors import MachineError
from testbed.kernel.ns import NetNs

_LIBRARY = "libnftables.so.1"


class NftError(OSError):
    """The ruleset was refused as a whole; the message is the library's own."""


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


class Nft:
    """A libnftables context in one namespace."""

    def __init__(self, ns: NetNs) -> None:
        """MachineError when the library is missing."""
        self._ns = ns
        self._library = _library()
        with ns.entered():
            self._context: int | None = self._library.nft_ctx_new(0)
        if self._context is None:
            raise MachineError(f"{ns.name}: libnftables cannot start; is nftables in this kernel? see: hpn doctor")
        self._library.nft_ctx_buffer_output(self._context)
        self._library.nft_ctx_buffer_error(self._context)

    def run(self, ruleset: str) -> str:
        """Carry out ``ruleset`` (the language of nft(8)) as one atomic transaction; returns what a 'list' prints."""
        if self._context is None:
            raise NftError(f"{self._ns.name}: nftables context is closed")
        with self._ns.entered():
            failed = self._library.nft_run_cmd_from_buffer(self._context, ruleset.encode()) != 0
        # Reading empties both buffers, so the next run starts clean.
        output = self._library.nft_ctx_get_output_buffer(self._context) or b""
        errors = self._library.nft_ctx_get_error_buffer(self._context) or b""
        if failed:
            raise NftError(f"{self._ns.name}: {errors.decode(errors='replace').strip()}")
        return bytes(output).decode(errors="replace")

    def close(self) -> None:
        """Free the context; the rules stay in the kernel."""
        if self._context is not None:
            self._library.nft_ctx_free(self._context)
            self._context = None
