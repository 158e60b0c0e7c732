"""Parameters of receiver-driven admission, as for real links; the logic is in ``traffic.congestion.admission``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpn.traffic.congestion.admission import AdmissionReceiver
from hpn.traffic.congestion.constant import Constant
from hpn.traffic.congestion.control import Parameters
from hpn.traffic.congestion.scale import Scale


@dataclass(frozen=True, slots=True)
class AdmissionParameters(Parameters):
    """Admission limits: ``limit_bytes`` granted by one receiver and not yet arrived, ``slice_bytes`` in one grant."""

    limit_bytes: int
    slice_bytes: int

    def control(self, line_rate_bps: float, scale: Scale) -> Constant:
        """Return the control: granted data is sent at line rate."""
        return Constant(line_rate_bps)

    def admission(self, scale: Scale, path_mtu: int) -> AdmissionReceiver:
        """Return the admission logic of one receiving rank. A slice is at least one packet, and complete packets."""
        slice_bytes = max(scale.bytes_(self.slice_bytes) // path_mtu, 1) * path_mtu
        return AdmissionReceiver(max(scale.bytes_(self.limit_bytes), slice_bytes), slice_bytes)

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """Yield problems: limits of 0 or less, or a slice above the limit."""
        if self.limit_bytes <= 0:
            yield "limit_bytes", f"{self.limit_bytes} bytes admit nothing; write more, such as 4 MB"
        if self.slice_bytes <= 0:
            yield "slice_bytes", f"{self.slice_bytes} bytes grant nothing; write more, such as 512 KB"
        elif self.slice_bytes > self.limit_bytes > 0:
            yield "slice_bytes", f"{self.slice_bytes} bytes are above the limit of {self.limit_bytes}; write less"
