"""Methods of location: from packets sent and lost by path to the suspects that explain the losses, best first. Pure.

A method is an entry. All see the same: ``Suspects`` and two counts for each path. They import numpy, this module does
not: the command line lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpn.testbed.entries import Registry

if TYPE_CHECKING:
    from hpn.failover.locating.seen import Accused, Seen

Locate = Callable[["Seen"], Sequence["Accused"]]
"""Function that returns nobody if the losses, if any, are those of a healthy network."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method; ``load`` imports and returns it.

    ``sure``: confidence from which its first suspect is an answer; 0 where the method has no measure of its own.
    """

    name: str
    summary: str
    load: Callable[[], Locate]
    sure: float = 0.0


def _likelihood() -> Locate:
    from hpn.failover.locating.likelihood import likelihood

    return likelihood


def _voting() -> Locate:
    from hpn.failover.locating.voting import voting

    return voting


def _regression() -> Locate:
    from hpn.failover.locating.regression import regression

    return regression


METHODS: Registry[Method] = Registry(
    "method of location",
    lambda method: method.name,
    (
        Method("likelihood", "the suspects that make the losses likeliest, one after the other", _likelihood, 0.8),
        Method("voting", "links that lossy paths have in common (007, NSDI 2018)", _voting),
        Method("regression", "links whose fitted success rate is low (NetBouncer, NSDI 2019)", _regression),
    ),
    of=Method,
)
"""Methods, by the name that users write."""
