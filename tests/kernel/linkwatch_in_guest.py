"""How late far ends hear of 250 links that go and come, by this kernel itself (0) or asked to (1): a JSON list of ms.

    python -m tests.kernel.linkwatch_in_guest 0|1

In virtual time nothing else of the machine shows. Two changes each: the first while the watcher has none behind it.
"""

from __future__ import annotations

import json
import select
import sys
import time

from hpn.testbed.kernel import linkwatch
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Monitor, Netlink
from tests.kernel.linkwatch_pairs import FAR, NEAR, heard, pairs

_GIVE_UP_S = 30.0


def _late_ms(asking: Netlink, monitor: Monitor, *, up: bool, ask: bool) -> float:
    """Until the last far end has heard that its port is up or not."""
    begin = time.monotonic()
    asking.run([rtnl.set_link(near, up=up) for near in NEAR])
    if ask:
        linkwatch.carry_out_far(asking, NEAR)
    told: set[int] = set()
    while len(told) < len(FAR):
        ready, _, _ = select.select([monitor], [], [], _GIVE_UP_S)
        if not ready:
            raise TimeoutError(f"{len(told)} of {len(FAR)} have heard")
        told |= {far for far, carrier in heard(monitor).items() if carrier is up}
    return 1e3 * (time.monotonic() - begin)


def main() -> None:
    """Print the two of them."""
    asking, monitor = pairs()
    print(json.dumps([_late_ms(asking, monitor, up=up, ask=sys.argv[1] == "1") for up in (False, True)]))


if __name__ == "__main__":
    main()
