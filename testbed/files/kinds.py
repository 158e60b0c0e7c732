"""The kinds of YAML files that users write, distinguished by their top keys.

Changes when users write another kind of file. A file of the wrong kind gets a one-line error, not one per key.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import Document


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file. ``keys``: any of these at the top identifies it; ``use``: a command that takes such a file."""

    name: str
    keys: frozenset[str]
    use: str


KINDS: Registry[Kind] = Registry(
    "kind of file",
    lambda kind: kind.name,
    (
        Kind("drill", frozenset({"drill"}), "hpn drill run {}"),
        Kind("suite", frozenset({"suite"}), "hpn ci run {}"),
        Kind("promises", frozenset({"promises"}), "hpn audit FABRIC --promises {}"),
        Kind("topology", frozenset({"preset", "architecture", "segments", "hosts", "rails", "aggs"}), "hpn plan {}"),
    ),
    of=Kind,
)


def expect(document: Document, wanted: str) -> None:
    """Raise InputError if the document is of another kind than ``wanted``, with a command that takes it."""
    if KINDS[wanted].keys & document.data.keys():
        return
    other = next((kind for kind in KINDS.values() if kind.keys & document.data.keys()), None)
    if other is not None:
        use = other.use.format(document.name)
        raise InputError(f"{document.name} is a {other.name} file, a {wanted} file is needed; this one is for: {use}")
