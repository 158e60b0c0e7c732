"""The importers by name, in the order in which files are tried."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.files.document import shorten
from hpn.testbed.importing.formats import containerlab, csv_cables, netbox, netlab, simai, sonic
from hpn.testbed.importing.importer import Imported, Importer, SourceText
from hpn.testbed.importing.resolving import imported
from hpn.testbed.importing.wishes import Wishes

IMPORTERS: Registry[Importer] = Registry(
    "importer",
    lambda importer: importer.name,
    (containerlab.IMPORTER, netlab.IMPORTER, sonic.IMPORTER, netbox.IMPORTER, simai.IMPORTER, csv_cables.IMPORTER),
    of=Importer,
)
"""Every format; plug-ins add theirs with ``IMPORTERS.add(Importer(...))``."""


def import_network(sources: Sequence[SourceText], wishes: Wishes, name: str | None = None) -> Imported:
    """Return the network in these files, in the format of that name or the one that they look like.

    InputError with every mistake, as file:line; cause; way out.
    """
    return imported(_importer(sources, name).read(sources), wishes)


def _importer(sources: Sequence[SourceText], name: str | None) -> Importer:
    if name is not None and name in IMPORTERS:
        return IMPORTERS[name]
    if name is not None:
        raise InputError(f"no format {shorten(name)}; {did_you_mean(name, IMPORTERS, 'formats are')}")
    if not sources:
        raise InputError("no file to import; name one")
    fits = [importer for importer in IMPORTERS.values() if all(map(importer.recognises, sources))]
    if not fits:
        names = ", ".join(source.name for source in sources[:3])
        raise InputError(f"{names}: no known format, or several; say which: --format {', '.join(IMPORTERS)}")
    return fits[0]
