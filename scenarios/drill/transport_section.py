"""Reader of ``transport:`` below a drill's ``job:``: the transport of its queue pairs and the settings of that.

Changes when a transport gets a setting.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from hpn.scenarios.drill.client_section import has_client
from hpn.testbed.fabric.buffers import balances, rdma_marker, trimmed_dscp
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.values import Strict
from hpn.testbed.files.check import Mistakes, did_you_mean
from hpn.testbed.files.document import Plain, shorten
from hpn.testbed.files.units import duration
from hpn.testbed.files.words import OneOf
from hpn.traffic.multipath.settings import FEWEST_PATHS, MOST_PATHS, Multipath
from hpn.traffic.transport.transports import RC, TRANSPORTS

_DEFAULT = Multipath()
_WHERE = ("job", "transport")


class TransportSection(Strict):
    """``transport:``, how a queue pair's packets cross the network and what makes up for lost ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    use: Annotated[str, OneOf(TRANSPORTS)] = Field(examples=["multipath"])
    paths: int = Field(default=_DEFAULT.paths, ge=FEWEST_PATHS, le=MOST_PATHS)
    probe_interval_ns: Annotated[int, duration("1 ms", "10 s")] = Field(
        default=_DEFAULT.probe_interval_ns, alias="probe_interval"
    )
    skip_for_ns: Annotated[int, duration("0 ms", "10 s")] = Field(default=_DEFAULT.skip_for_ns, alias="skip_for")
    deny_after: int = Field(default=_DEFAULT.deny_after, ge=1, le=1000)
    dark_after: int = Field(default=_DEFAULT.dark_after, ge=1, le=MOST_PATHS)


def transport_of(mistakes: Mistakes, job: dict[str, Plain], spec: FabricSpec | None) -> Multipath | None:
    """Return the settings of ``transport:`` for such a job; None if it is a reliable connection, or invalid."""
    given = job.get("transport", RC.name)
    if not isinstance(given, dict):
        if given not in TRANSPORTS:
            hint = did_you_mean(str(given), TRANSPORTS, "write one of")
            mistakes.add(_WHERE, f"job.transport is {shorten(given)}; {hint}")
            return None
        given = {"use": given}
    section = mistakes.check(TransportSection, given, _WHERE)
    if section is None:
        return None
    kind = TRANSPORTS[section.use]
    if kind.settings is None:
        if extra := sorted(section.model_fields_set - {"use"}):
            mistakes.add(_WHERE, f"job.transport: {kind.name} has no settings; leave {', '.join(extra)} out")
        return None
    for key in kind.excludes:
        if key.name in job and key.wrong(job[key.name]):
            text = f"job.{key.name} is {shorten(job[key.name])}" if key.shown else f"job.{key.name}"
            mistakes.add(("job", key.name), f"{text}, with transport: {kind.name}, {key.why}")
    _check_around(mistakes, kind.name, spec)
    if spec is not None:
        _check_ports(mistakes, section, spec.ports_of_nic)
    dscp = None if spec is None else trimmed_dscp(spec)
    return kind.settings(**section.model_dump(exclude={"use"}), trimmed_dscp=dscp)


def _check_ports(mistakes: Mistakes, section: TransportSection, ports: int) -> None:
    """Note too few paths for the ports of a NIC."""
    if section.paths < ports:
        text = f"job.transport.paths is {section.paths}, so that some of a NIC's {ports} ports carry nothing"
        mistakes.add((*_WHERE, "paths"), f"{text}; write {ports} or more")
    elif "dark_after" in section.model_fields_set and section.dark_after > section.paths // ports:
        each = section.paths // ports
        text = f"job.transport.dark_after is {section.dark_after}, and {section.paths} paths are {each} a port"
        mistakes.add((*_WHERE, "dark_after"), f"{text}: no port would ever look dark; write {each} or less")


def _check_around(mistakes: Mistakes, name: str, spec: FabricSpec | None) -> None:
    """Note what a transport of many paths does not go with outside of ``job:``."""
    if has_client(mistakes):
        text = "a client brings its own transport, and its packets take one path; leave the client out"
        mistakes.add(_WHERE, f"job.transport: {name} beside workload.client: {text}")
    if spec is not None and balances(spec):
        text = "an entropy value is no path when switches choose for each packet; leave out switch.balancing"
        mistakes.add(_WHERE, f"job.transport: {name}: {text}")
    if spec is not None and spec.srv6 is not None and spec.switch is None and rdma_marker(spec) is not None:
        text = "ecn marks the outer header of SRv6, and no host copies the mark; let switch.classes mark"
        mistakes.add(_WHERE, f"job.transport: {name}: {text}")
    if spec is not None and spec.nic.binds:
        text = "a bound queue pair leaves by one port alone; write nic: {port_selection: hash} in the topology"
        mistakes.add(_WHERE, f"job.transport: {name}: {text}")
