"""BIRD's configuration of one switch, generated from the fabric: pure text, no kernel.

eBGP runs on every link between tiers (not on a stack's peer link), with one ASN per tier and plane. Aggs have one for
each pod too, and for each group of them that only Cores join (``fabric.groups``).
RFC 7938 section 5.2.1 gives one ASN to all Tier 1 switches and one to the Tier 2 of each cluster, as here. It gives
every ToR (Tier 3) its own, reused in other clusters where ToRs then accept it (5.2.2). Here all ToRs of a plane have
one and accept it once in a received path. A Clos of unique ones would hunt for paths after a withdrawal. No valley
(ToR - Agg - ToR - Agg) can appear, for two reasons: a ToR announces only routes that it originates, and an Agg or Core
drops a path with its own ASN in it.

With ``asn: per-switch`` each switch has its own and announces its best routes to all neighbours. A path then has a
valley where links have failed and no shorter path is left.

Sessions end with carrier and with the hold timer; BFD is an option, as in RFC 7938 section 7.1, which prefers to
avoid a further protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpn.testbed.fabric.core_ports import PresetTable, preset_tables
from hpn.testbed.fabric.model import Fabric, Node, Role
from hpn.testbed.fabric.spec import BgpSpec
from hpn.testbed.kernel.rtnetlink.rtnl import PROTO_HOST_ROUTE
from hpn.testbed.routing.neighbours import Neighbour, access_subnets, neighbours

ECMP_LIMIT = 64
"""Next hops per route that BIRD may merge; an HPN ToR has 60 uplinks, a DCN+ ToR 64."""

SCAN_S = 1
"""Period of BIRD's interface scans, except in large labs (``_scan_s``)."""

_RARE_SCAN_S = 10
_OFTEN_HZ = 5

_KERNEL_SCAN_S, _LARGE_KERNEL_SCAN_S = 20, 60
"""Period of its kernel route scans; in large labs BIRD's own default."""

_OF_SUBNETS = "where source = RTS_STATIC"

_OURS = re.compile(r"(up|core|[sp])\d[a-z0-9]*")

LOG = """\
log stderr { trace, info, remote, warning, error, auth, fatal, bug };
timeformat log iso long us;
"""

# A live host's route must win over BGP's for the same /32 (from the twin ToR in a shared plane), and
# BIRD gives learned kernel routes the lowest preference of all.
_LEARN = """\
filter host_routes {{
  if krt_source = {protocol} && dest = RTD_UNICAST && net ~ [ {subnets} ] then {{ preference = 200; accept; }}
  reject;
}}
"""

# BIRD 2.0 computes its sleep before it checks what its own table feed has queued: the first UPDATEs of a new
# session wait for a packet or a timer, up to 3 s. The device scan is a timer that bounds that wait to a second. With
# many sessions their keepalives bound it, and then scans (1 ms of CPU with 128 ports, under the kernel's one lock) are
# most of a large lab's load at rest. Later versions of BIRD check again before they sleep.
_KERNEL = """\
protocol device {{
  scan time {scan_s};
}}
protocol kernel {{
  scan time {kernel_s};
  persist no;
  merge paths yes limit {limit};
{learn}\
  ipv4 {{
    import {imports};
    export where {exports};
  }};
}}
"""

_BFD = """\
protocol bfd {{
  debug {{ events }};
  interface "*" {{
    min rx interval {interval_ms} ms;
    min tx interval {interval_ms} ms;
    multiplier {multiplier};
  }};
}}
"""

# A pipe passes every candidate, not just the best. Host routes only: a subnet route here would hide the host
# routes in main that this table's ports do not offer.
_PRESET = """\
ipv4 table {table};
protocol kernel kernel_{table} {{
  kernel table {number};
  scan time {kernel_s};
  persist no;
  ipv4 {{
    table {table};
    import none;
    export all;
  }};
}}
protocol pipe pipe_{table} {{
  table master4;
  peer table {table};
  import none;
  export where net.len = 32 && ({ports});
}}
"""


def config(
    fabric: Fabric,
    node: Node,
    *,
    draining: bool = False,
    deaf: bool = False,
    holding: bool = False,
    large: bool = False,
) -> str:
    """Return the whole configuration of ``node``, a switch, except control socket and PID file (command line).

    A ``draining`` ToR announces its subnet routes but no host: senders with another path avoid it, others still arrive.
    A ``holding`` switch keeps received routes out of its kernel; a ``deaf`` one has not learned its own hosts. In a
    ``large`` lab it spares the kernel.
    """
    parts = [f"# {node.name}\nrouter id {node.router_id};\n{LOG}"]
    subnets, kernel_s = access_subnets(fabric, node), _kernel_scan_s(deaf=deaf, large=large)
    if subnets:
        allowed = ", ".join(f"{subnet}{{32,32}}" for subnet in subnets)
        parts.append(_LEARN.format(protocol=PROTO_HOST_ROUTE, subnets=allowed))
    parts.append(
        _KERNEL.format(
            scan_s=_scan_s(fabric, node) if large else SCAN_S,
            kernel_s=kernel_s,
            limit=ECMP_LIMIT,
            learn="  learn;\n" if subnets else "",
            imports="filter host_routes" if subnets and not deaf else "none",
            exports="source = RTS_STATIC" if holding else "source = RTS_BGP || source = RTS_STATIC",
        )
    )
    parts.extend(_preset(table, kernel_s) for table in preset_tables(fabric, node))
    if subnets:
        parts.append(_fallback(subnets))
    bfd = fabric.spec.bgp.bfd
    if bfd is not None:
        parts.append(_BFD.format(interval_ms=bfd.interval_ms, multiplier=bfd.multiplier))
    parts.extend(_sessions(fabric, node, draining))
    return "\n".join(parts)


def _scan_s(fabric: Fabric, node: Node) -> int:
    """Return a long period if keepalives wake it ``_OFTEN_HZ``; they are unsynchronised (RFC 4271 section 10)."""
    keepalives = 2 * len(neighbours(fabric, node)) / fabric.spec.bgp.keepalive_s
    return _RARE_SCAN_S if keepalives >= _OFTEN_HZ else SCAN_S


def _kernel_scan_s(*, deaf: bool, large: bool) -> int:
    """Return the scan period. It differs while deaf, so that the change makes BIRD rescan and learn its hosts."""
    return (_LARGE_KERNEL_SCAN_S if large else _KERNEL_SCAN_S) + deaf


def _preset(table: PresetTable, kernel_s: int) -> str:
    """Return a separate table for the preset egress ports' routes; it follows each update together with main.

    All of a Core's paths to a host are equally long (Agg, ToR), so every route of an egress port is one of the best.
    """
    ports = " || ".join(f'proto = "{port.name}"' for port in table.egress.values())
    return _PRESET.format(table=table.name, number=table.number, kernel_s=kernel_s, ports=ports)


def _fallback(subnets: tuple[str, ...]) -> str:
    """Return the subnet routes: announced to attract traffic, in the FIB to drop packets without a /32.

    Blackhole, not unreachable: a switch that gleans sends no ICMP error either. A sender that got one would stop for a
    reason the paper's hosts do not have.
    """
    routes = "".join(f"  route {subnet} blackhole;\n" for subnet in subnets)
    return f"protocol static subnets {{\n  ipv4;\n{routes}}}\n"


def _sessions(fabric: Fabric, node: Node, draining: bool) -> Iterator[str]:
    found = neighbours(fabric, node)
    bgp = fabric.spec.bgp
    if any(neighbour.above for neighbour in found):
        exports = _exports_up(node, draining, valleys=bgp.valleys)
        yield _template("above", node, bgp, exports, allow_own_asn=node.role is Role.TOR and not bgp.valleys)
    if not all(neighbour.above for neighbour in found):
        exports = _OF_SUBNETS if node.role is Role.TOR and draining else "all"  # a ToR of a direct network
        yield _template("below", node, bgp, exports, allow_own_asn=False)
    yield from map(_session, found)


def _exports_up(node: Node, draining: bool, *, valleys: bool) -> str:
    """Return the export filter upwards: a ToR's own routes, and an Agg's direct ones from ToRs; all if ``valleys``."""
    if node.role is Role.TOR and draining:
        return _OF_SUBNETS
    if valleys:
        return "all"
    if node.role is Role.TOR:
        return "where source = RTS_STATIC || source = RTS_INHERIT"
    return "where source = RTS_BGP && bgp_path.len = 1"


def _template(name: str, node: Node, bgp: BgpSpec, exports: str, *, allow_own_asn: bool) -> str:
    """Return the common settings of one direction's sessions.

    Only the lower end connects. With both, connection collisions reset one session in a hundred of a big fabric and
    double the time to convergence. The start-up hold time is the session's own: BIRD's default lets a hung peer block
    an OPEN for four minutes.
    """
    return f"""\
template bgp {name} {{
  local as {node.asn};
{"  allow local as 1;" + chr(10) if allow_own_asn else ""}\
{"  passive;" + chr(10) if name == "below" else ""}\
  debug {{ states, events }};
  direct;
{"  bfd;" + chr(10) if bgp.bfd is not None else ""}\
  check link yes;
  graceful restart off;
  hold time {bgp.hold_s};
  startup hold time {bgp.hold_s};
  keepalive time {bgp.keepalive_s};
  connect delay time {bgp.connect_delay_s};
  connect retry time {bgp.connect_retry_s};
  error wait time {bgp.error_wait_min_s}, {bgp.error_wait_max_s};
  ipv4 {{
    import all;
    export {exports};
  }};
}}
"""


def _session(neighbour: Neighbour) -> str:
    """Return one session, named after its interface and bound to it: no carrier, no session."""
    return (
        f"protocol bgp {symbol(neighbour.port)} from {'above' if neighbour.above else 'below'} {{\n"
        f'  description "{neighbour.node}";\n'
        f'  interface "{neighbour.port}";\n'
        f"  neighbor {neighbour.name} as {neighbour.asn};\n}}\n"
    )


def symbol(port: str) -> str:
    """Return a port's name as BIRD reads it: quoted, unless it is one of our own."""
    return port if _OURS.fullmatch(port) else f"'{port}'"
