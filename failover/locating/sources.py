"""Sources of location: what is observed, of which paths, and when an observation is bad. Pure.

A source is an entry. Each turns a run's records into the same: two counts for each path and bin. They import numpy,
this module does not: the command line lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpn.testbed.entries import Registry

if TYPE_CHECKING:
    from hpn.failover.locating.observed import Observed
    from hpn.failover.locating.recorded import Recorded

Observe = Callable[["Recorded"], "Observed"]
"""Function that raises InputError where the run has no such records."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source; ``load`` imports and returns it.

    ``counted``: what it counts, in the plural; ``bad``: the share that an answer estimates.
    ``end_hosts``: only hosts are asked. Others count when they are named.
    """

    name: str
    summary: str
    counted: str
    bad: str
    load: Callable[[], Observe]
    end_hosts: bool = True


def _loss() -> Observe:
    from hpn.failover.locating.losses import losses

    return losses


def _delay() -> Observe:
    from hpn.failover.locating.delays import delays

    return delays


def _rate() -> Observe:
    from hpn.failover.locating.rates import rates

    return rates


def _retries() -> Observe:
    from hpn.failover.locating.retries import retries

    return retries


def _stamps() -> Observe:
    from hpn.failover.locating.stamps import stamps

    return stamps


def _ranks() -> Observe:
    from hpn.failover.locating.ranks import ranks

    return ranks


def _counters() -> Observe:
    from hpn.failover.locating.counters import counters

    return counters


SOURCES: Registry[Source] = Registry(
    "source of location",
    lambda source: source.name,
    (
        Source("loss", "packets of streams that did not arrive", "packets", "loss", _loss),
        Source("delay", "packets of streams that came later than usual on their path", "looks", "late", _delay),
        Source("rate", "queue pairs of a job that are slower than usual while they send", "looks", "slow", _rate),
        Source(
            "retries", "packets that queue pairs of a job missed: NAKs and retry timers", "packets", "loss", _retries
        ),
        Source("stamps", "times that switches wrote into packets (INT), longer than usual", "looks", "late", _stamps),
        Source("job", "ranks of a job that compute longer than others", "blocks of compute", "slow", _ranks),
        Source("counters", "packets that switch ports say they dropped", "packets", "loss", _counters, end_hosts=False),
    ),
    of=Source,
)
"""Sources, by the name that users write; the first is the default."""
