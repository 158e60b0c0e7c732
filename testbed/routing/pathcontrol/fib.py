"""Destinations that a ToR's kernel can reach by host routes, from netlink events. Pure; follows kernel behaviour."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from hpn.testbed.kernel.rtnetlink.rtnl import RT_TABLE_MAIN, RTN_UNICAST
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, RouteEvent


class Fib:
    """Main table's /32s and the interfaces without carrier. Subnet routes never count: they only attract and drop."""

    def __init__(self) -> None:
        self._routes: dict[str, dict[int, Sequence[int]]] = {}  # /32 to metric to out interfaces
        self._down: set[int] = set()

    def on_route(self, event: RouteEvent) -> str | None:
        """Process a route; return the address if it is a host route, None for every other route."""
        ip, _, length = event.prefix.partition("/")
        if length != "32" or event.table != RT_TABLE_MAIN:
            return None
        entries = self._routes.setdefault(ip, {})
        if event.gone:
            entries.pop(event.metric, None)
        else:
            entries[event.metric] = event.oifs if event.kind == RTN_UNICAST else ()
        if not entries:
            del self._routes[ip]
        return ip

    def on_link(self, event: LinkEvent) -> bool:
        """Process a link; return True if the interface has carrier."""
        if event.up and event.carrier and not event.gone:
            self._down.discard(event.ifindex)
            return True
        self._down.add(event.ifindex)
        if not event.up or event.gone:
            self._drop_flushed()
        return False

    def reachable(self, ip: str) -> bool:
        """Return True if the address has a unicast /32 through an interface with carrier."""
        return any(not self._down.issuperset(oifs) for oifs in self._routes.get(ip, {}).values())

    def there(self, but: Container[str]) -> Iterator[str]:
        """Yield every reachable address except these."""
        return (ip for ip in self._routes if ip not in but and self.reachable(ip))

    def _drop_flushed(self) -> None:
        """Drop the routes of downed interfaces, which the kernel removes without notification."""
        for ip, entries in list(self._routes.items()):
            for metric in [metric for metric, oifs in entries.items() if self._down.issuperset(oifs)]:
                del entries[metric]
            if not entries:
                del self._routes[ip]
