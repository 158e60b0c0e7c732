"""Reader of ``port_failover:``, ``port_recovery:`` and ``port_use:`` below a drill's ``job:``.

Changes when queue pairs leave a failed port, or return to it, in another way.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from hpn.scenarios.drill.job_keys import JobSection
from hpn.testbed.fabric.values import Strict
from hpn.testbed.files.check import Mistakes
from hpn.testbed.files.document import shorten
from hpn.testbed.files.units import duration
from hpn.testbed.files.words import OneOf
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.jobengine.port_use import PORT_USES
from hpn.traffic.transport.port_recovery import PortRecovery
from hpn.traffic.transport.probe_transport import PROBE_TRANSPORTS

_DEFAULT = PortRecovery()


class PortRecoverySection(Strict):
    """``port_recovery:``, how a failed queue pair returns."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    over: Annotated[str, OneOf(PROBE_TRANSPORTS)] = _DEFAULT.over
    attempts: int = Field(default=_DEFAULT.attempts, ge=1, le=10_000)
    backoff: float = Field(default=_DEFAULT.backoff, ge=1, le=100)
    longest_ns: Annotated[int, duration("5 s", "1440 min")] = Field(default=_DEFAULT.longest_ns, alias="longest")


def failover_of(mistakes: Mistakes, section: JobSection) -> PortRecovery | None:
    """Return the policy of ``port_recovery:``; None if it is absent or invalid."""
    if section.port_failover and section.queue_pairs < 2:
        text = "job.port_failover needs another queue pair to go on with; write queue_pairs: 2 or more"
        mistakes.add(("job", "port_failover"), text)
    if section.port_recovery and not section.port_failover:
        text = "job.port_recovery brings back what port failover has left; write port_failover: yes too"
        mistakes.add(("job", "port_recovery"), text)
    if PORT_USES[section.port_use].standby:
        _check_standby(mistakes, section)
    return _recovery_of(mistakes, section.port_recovery)


def _check_standby(mistakes: Mistakes, section: JobSection) -> None:
    where, text = ("job", "port_use"), f"job.port_use: {section.port_use}"
    if not section.port_failover:
        mistakes.add(where, f"{text} never uses its standby without port failover; write port_failover: yes too")
    if not CHOICES[section.source_ports].takes_ports_in_turn:
        others = ", ".join(choice.name for choice in CHOICES.values() if choice.takes_ports_in_turn)
        mistakes.add(where, f"{text} needs queue pairs at known ports; write source_ports: one of {others}")


def _recovery_of(mistakes: Mistakes, data: object) -> PortRecovery | None:
    where = ("job", "port_recovery")
    if isinstance(data, bool):
        return _DEFAULT if data else None
    if not isinstance(data, dict):
        text = f"job.port_recovery is {shorten(data)}; write yes, no, or {{attempts: {_DEFAULT.attempts}, ...}}"
        mistakes.add(where, text)
        return None
    found = mistakes.check(PortRecoverySection, data, where)
    if found is None:
        return None
    if found.backoff == 1 and "longest_ns" in found.model_fields_set:
        mistakes.add(
            (*where, "longest"), "job.port_recovery.longest limits a back-off; write backoff: 2, or leave it out"
        )
    return PortRecovery(**found.model_dump())
