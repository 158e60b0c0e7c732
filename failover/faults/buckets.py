"""Fault of a hash table: flows of one bucket are lost, all others pass. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hpn.failover.faults.actions import Action, FaultActions
from hpn.failover.faults.fields import Unit, choice, parameter
from hpn.failover.faults.impair import SilentFault
from hpn.failover.faults.streams import NOTHING, Directions, Frames, Stream, streams
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric


@dataclass(frozen=True, slots=True)
class BucketDrop(SilentFault):
    """RoCE packets whose 5-tuple hash falls in one ``bucket`` of ``buckets`` are lost; all others pass.

    In hardware: one member entry of a LAG or ECMP table that points nowhere, a bad TCAM line, one pipe of a line card.
    A flow loses everything or nothing, for as long as it keeps its ports. LACP, ARP and BGP pass, so nobody notices,
    and a ping passes as well unless its hash is in the bucket. Each link hashes with another seed.
    """

    KIND: ClassVar[str] = "bucket-drop"

    buckets: int = parameter("buckets", Unit.COUNT, 2, 1024, default=8)
    bucket: int = parameter("bucket", Unit.COUNT, 0, 1023, default=0)
    direction: Directions = choice("direction", Directions, default=Directions.BOTH)  # noqa: RUF009 - a field

    def on(self, fabric: Fabric) -> BucketDrop:
        """Return it unchanged. InputError when there is no such bucket."""
        if self.bucket >= self.buckets:
            raise InputError(
                f"'bucket' is {self.bucket}, but of {self.buckets} 'buckets' the last is {self.buckets - 1}"
            )
        return self

    def silences(self) -> frozenset[Stream]:
        """Return no stream: the other buckets pass."""
        return NOTHING

    def shows_in(self) -> frozenset[Stream]:
        """Return data in these directions."""
        return streams(self.direction.each, (Frames.DATA,))

    def act(self, actions: FaultActions) -> Action:
        """Drop the flows of the bucket where they arrive."""
        link = actions.fabric.link(self.link)
        return actions.lose_bucket(self, link, self.direction.each, self.buckets, self.bucket)
