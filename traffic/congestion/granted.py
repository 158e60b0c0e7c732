"""Parameters of receiver-driven admission, as for real links; what they make is in ``traffic.congestion.admission``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpn.traffic.congestion.admission import AdmissionReceiver
from hpn.traffic.congestion.constant import Constant
from hpn.traffic.congestion.control import Parameters
from hpn.traffic.congestion.scale import Scale


@dataclass(frozen=True, slots=True)
class AdmissionParameters(Parameters):
    """``limit_bytes``: granted by one receiver and not yet arrived, at most; ``slice_bytes``: of one grant, at most."""

    limit_bytes: int
    slice_bytes: int

    def control(self, line_rate_bps: float, scale: Scale) -> Constant:
        """What may be sent is sent at line rate."""
        return Constant(line_rate_bps)

    def admission(self, scale: Scale, path_mtu: int) -> AdmissionReceiver:
        """What admits at one receiving rank. A slice is of whole packets, at least of one."""
        slice_bytes = max(scale.bytes_(self.slice_bytes) // path_mtu, 1) * path_mtu
        return AdmissionReceiver(max(scale.bytes_(self.limit_bytes), slice_bytes), slice_bytes)

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """Nothing admitted, or more with one grant than all together."""
        if self.limit_bytes <= 0:
            yield "limit_bytes", f"{self.limit_bytes} bytes admit nothing; write more, such as 4 MB"
        if self.slice_bytes <= 0:
            yield "slice_bytes", f"{self.slice_bytes} bytes grant nothing; write more, such as 512 KB"
        elif self.slice_bytes > self.limit_bytes > 0:
            yield "slice_bytes", f"{self.slice_bytes} bytes are above the limit of {self.limit_bytes}; write less"
