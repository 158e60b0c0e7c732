"""NetBox's JSON: answers of its API about devices, interfaces, cables and IP addresses. Pure.

Each file is an answer, a list of objects, or a mapping with several lists. Devices have the role, interfaces speed and
LAG. Cables are required, of any version of NetBox; a path through patch panels is taken from connected_endpoints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from hpn.testbed.errors import InputError
from hpn.testbed.files.check import Mistakes
from hpn.testbed.files.document import Document, Plain, Where, shorten
from hpn.testbed.importing.addresses import ipv4
from hpn.testbed.importing.found import Cable, End, Found, FoundNic, FoundNode, Left, Place
from hpn.testbed.importing.importer import Importer, SourceText
from hpn.testbed.importing.json_document import document_of
from hpn.testbed.importing.mistakes import MOST, ImportMistakes
from hpn.testbed.importing.rolewords import role_of

_INTERFACE = "dcim.interface"
_MOST_OBJECTS = 500_000
_KBPS, _GBPS = 1000, 10**9
_TYPE = re.compile(r"(\d+(?:\.\d+)?)gbase")
_ASN_FIELDS = ("bgp_asn", "asn")
_HINT = "correct it in NetBox, or leave the cable out: --leave NODE:PORT"
_KNOWN = re.compile(r'"(a_terminations|termination_a|device_type|assigned_object|connected_endpoints)"\s*:')


Object = TypeVar("Object")


class _Loose(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Named(_Loose):
    name: str | None = None
    slug: str | None = None


class _Value(_Loose):
    value: str | None = None


class _Device(_Loose):
    name: str | None = None
    role: _Named | None = None
    device_role: _Named | None = None
    custom_fields: dict[str, object] | None = None


class _Port(_Loose):
    """An interface, or another component that a cable can end at; ``device`` is None at circuits and power feeds."""

    id: int = 0
    name: str | None = None
    device: _Named | None = None


class _Interface(_Port):
    type: _Value | None = None
    speed: int | None = Field(default=None, ge=0, description="kbit/s")
    lag: _Named | None = None
    connected_endpoints: list[_Port] | None = None
    connected_endpoints_type: str | None = None


class _Termination(_Loose):
    object_type: str = ""
    object: _Port | None = None


class _Cable(_Loose):
    """A cable of NetBox 3.3 or later, or of one before, which has one termination at each side."""

    a_terminations: list[_Termination] | None = None
    b_terminations: list[_Termination] | None = None
    termination_a_type: str = ""
    termination_b_type: str = ""
    termination_a: _Port | None = None
    termination_b: _Port | None = None
    status: _Value | str | None = None

    @property
    def sides(self) -> tuple[Sequence[_Termination], Sequence[_Termination]]:
        """Return the terminations of both sides."""
        if self.a_terminations is not None or self.b_terminations is not None:
            return self.a_terminations or (), self.b_terminations or ()
        old = (self.termination_a_type, self.termination_a), (self.termination_b_type, self.termination_b)
        one, two = ([_Termination(object_type=kind, object=port)] if port else [] for kind, port in old)
        return one, two


class _Address(_Loose):
    address: str
    assigned_object: _Port | None = None


class _Objects:
    """Objects of all files by kind, each with its place."""

    def __init__(self) -> None:
        self.devices: list[tuple[_Device, Place]] = []
        self.interfaces: list[tuple[_Interface, Place]] = []
        self.cables: list[tuple[_Cable, Place]] = []
        self.addresses: list[tuple[_Address, Place]] = []
        self.other = 0

    def add(self, document: Document, mistakes: Mistakes) -> None:
        """Add the objects of a file. InputError for too many."""
        for number, (where, data) in enumerate(_listed(document.data, ())):
            if number >= _MOST_OBJECTS:
                raise InputError(f"{document.name}: more than {_MOST_OBJECTS:,} objects; export a part of the network")
            place = Place(document, where)
            keys = data.keys()
            if keys & {"a_terminations", "termination_a", "b_terminations"}:
                _put(self.cables, mistakes.check(_Cable, data, where), place)
            elif "address" in keys:
                _put(self.addresses, mistakes.check(_Address, data, where), place)
            elif "device_type" in keys:
                _put(self.devices, mistakes.check(_Device, data, where), place)
            elif "device" in keys:
                _put(self.interfaces, mistakes.check(_Interface, data, where), place)
            else:
                self.other += 1


def _put(into: list[tuple[Object, Place]], found: Object | None, place: Place) -> None:
    if found is not None:
        into.append((found, place))


def _listed(data: dict[str, Plain], where: Where) -> Iterator[tuple[Where, dict[str, Plain]]]:
    """Yield the objects of lists at the top, or of answers below a key."""
    for key, value in data.items():
        if isinstance(value, list):
            yield from (((*where, key, n), each) for n, each in enumerate(value) if isinstance(each, dict))
        elif isinstance(value, dict) and not where:
            yield from _listed(value, (key,))


def read(sources: Sequence[SourceText]) -> Found:
    """Return the network of one or several files. InputError with every mistake."""
    objects = _Objects()
    problems: list[str] = []
    for source in sources:
        document = document_of(source)
        mistakes = Mistakes(document)
        objects.add(document, mistakes)
        problems += mistakes.error().problems if mistakes else ()
    if problems:
        raise InputError(problems[:MOST])
    if not objects.cables:
        raise InputError(f"{sources[0].name}: no cables in these files; add what /api/dcim/cables/?limit=0 answers")
    return _Network(objects).found()


class _Network:
    """Ends of cables with what interfaces and addresses say of them."""

    def __init__(self, objects: _Objects) -> None:
        self.objects = objects
        self.mistakes = ImportMistakes()
        self.left: dict[str, list[str]] = {}
        self.interfaces = {_label(each): each for each, _ in objects.interfaces}
        self.lags: dict[str, dict[str, None]] = {}  # LAG interfaces by device, in the order of the files
        for each, _ in objects.interfaces:
            if each.lag is not None and each.lag.name:
                self.lags.setdefault(_of(each) or "", {})[each.lag.name] = None
        self.addresses = {
            _label(each.assigned_object): address
            for each, _ in objects.addresses
            if each.assigned_object is not None and (address := ipv4(each.address)) is not None
        }

    def found(self) -> Found:
        """Return the network. InputError with every mistake."""
        cables = [cable for each, place in self.objects.cables if (cable := self._cable(each, place)) is not None]
        cables += self._through_panels({end.label for cable in cables for end in cable.ends})
        nodes = [self._node(each, place) for each, place in self.objects.devices if each.name]
        known = {node.name for node in nodes}
        if not self.objects.devices:  # then the cables alone say which devices there are
            for cable in cables:
                fresh = (end.node for end in cable.ends if end.node not in known)
                nodes += [FoundNode(name, cable.place, kind="no devices in these files") for name in fresh]
                known |= {end.node for end in cable.ends}
        self.mistakes.check()
        unnamed = [str(place) for each, place in self.objects.devices if not each.name]
        if unnamed:
            self.left["device without a name"] = unnamed
        if self.objects.other:
            self.left["neither devices, interfaces, cables nor addresses"] = [f"{self.objects.other} objects"]
        left = tuple(Left("objects", why, tuple(names)) for why, names in self.left.items())
        return Found(tuple(nodes), tuple(cables), left)

    def _node(self, device: _Device, place: Place) -> FoundNode:
        name = device.name or ""
        given = device.role or device.device_role or _Named()
        role = role_of(given.slug or "") or role_of(given.name or "")
        fields = device.custom_fields or {}
        asn = next((each for key in _ASN_FIELDS if type(each := fields.get(key)) is int), None)
        nics = {lag: FoundNic(self.addresses.get(f"{name}:{lag}")) for lag in self.lags.get(name, ())}
        about = f"role {shorten(given.slug or given.name)}" if given.slug or given.name else "no role in NetBox"
        known = asn if isinstance(asn, int) and 1 <= asn <= 2**32 - 2 else None
        return FoundNode(name, place, role, about, known, nics=nics)

    def _cable(self, cable: _Cable, place: Place) -> Cable | None:
        status = cable.status.value if isinstance(cable.status, _Value) else cable.status
        if status not in {None, "connected"}:
            self.left.setdefault(f"cable is {shorten(status, quoted=False)}", []).append(str(place))
            return None
        sides = cable.sides
        if any(not side for side in sides):
            self.mistakes.add(place, f"a cable with one end; {_HINT}")
            return None
        kinds = {each.object_type for side in sides for each in side}
        if kinds != {_INTERFACE}:
            why = f"cable to {', '.join(sorted(kinds - {_INTERFACE})) or 'nothing'}, no interface"
            self.left.setdefault(shorten(why, 100, quoted=False), []).append(str(place))
            return None
        if any(len(side) != 1 for side in sides):
            self.mistakes.add(
                place, "a cable with several interfaces at one side; enter breakouts as cables of two ends"
            )
            return None
        ends = [self._end(side[0].object or _Port(), place) for side in sides]
        return Cable((ends[0], ends[1]), place) if ends[0] is not None and ends[1] is not None else None

    def _end(self, port: _Port, place: Place) -> End | None:
        node = _of(port)
        if not node or not port.name:
            self.mistakes.add(place, f"an end without a device or a name; {_HINT}")
            return None
        label = f"{node}:{port.name}"
        interface = self.interfaces.get(label, _Interface())
        lag = interface.lag.name if interface.lag is not None else None
        return End(node, port.name, self.addresses.get(label), _rate(interface), lag)

    def _through_panels(self, cabled: set[str]) -> Iterator[Cable]:
        """Yield a cable for each two interfaces that NetBox has traced to each other through patch panels."""
        seen = set(cabled)
        for interface, place in self.objects.interfaces:
            far = interface.connected_endpoints or ()
            if interface.connected_endpoints_type != _INTERFACE or len(far) != 1 or _label(interface) in seen:
                continue
            one, two = self._end(interface, place), self._end(far[0], place)
            if one is not None and two is not None:
                seen |= {one.label, two.label}
                yield Cable((one, two), place)


def _of(port: _Port) -> str | None:
    return port.device.name if port.device is not None else None


def _label(port: _Port) -> str:
    return f"{_of(port)}:{port.name}"


def _rate(interface: _Interface) -> int | None:
    """Return the speed, else that of the type, such as 400gbase-x-osfp."""
    if interface.speed:
        return interface.speed * _KBPS
    match = _TYPE.match(interface.type.value or "") if interface.type is not None else None
    return int(float(match[1]) * _GBPS) if match else None


def _recognises(source: SourceText) -> bool:
    return source.name.lower().endswith(".json") and bool(_KNOWN.search(source.text))


IMPORTER = Importer(
    "netbox",
    "answers of NetBox's API as JSON files: devices, cables; also interfaces and ip-addresses",
    _recognises,
    read,
)
