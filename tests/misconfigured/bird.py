"""The bird.conf of one switch of a drawn network, as somebody would write it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.misconfigured.drawn import Drawn

_HEAD = """\
# {name}
router id 10.255.1.{number};

protocol device {{ scan time 1; }}
"""
_HOSTS = """\
filter hosts {{
{indent}if net ~ [ {pool}.0.0.0/8{{32,32}} ] then accept;
{indent}reject;
}}
"""
_KERNEL = """\
protocol kernel {{
{indent}learn;
{indent}merge paths yes limit {most_paths};
{indent}ipv4 {{
{indent}{indent}import filter {{ preference = 200; accept; }};
{indent}{indent}export where source = RTS_BGP;
{indent}}};
}}
"""
_BFD = """\
protocol bfd {
  interface "*" { min rx interval 100 ms; min tx interval 100 ms; multiplier 3; };
}
"""


def config(net: Drawn, name: str) -> str:
    """The whole file."""
    indent = net.style.spaces
    parts = [_HEAD.format(name=name, number=net.numbers[name])]
    if net.style.filters != "none":
        parts.append(_HOSTS.format(pool=net.pool, indent=indent))
    parts.append(_KERNEL.format(indent=indent, most_paths=net.style.most_paths))
    if net.style.bfd:
        parts.append(_BFD)
    if not net.style.inline:
        parts.append("template bgp fabric {\n" + "".join(f"{indent}{line}\n" for line in _common(net, name)) + "}\n")
    return "".join([*parts, *_sessions(net, name)])


def _common(net: Drawn, name: str) -> Iterator[str]:
    style = net.style
    yield f"local as {net.asns[name]};"
    yield f"hold time {style.hold_s};"
    yield f"keepalive time {style.keepalive_s};"
    yield f"connect delay time 1; connect retry time {style.connect_s};"
    yield "error wait time 1, 2;"
    if style.bfd:
        yield "bfd on;"
    if name in net.leaves and net.scheme in {"tiers", "racks"}:
        yield "allow local as 1;"
    out = "all" if style.filters == "none" else "filter hosts"
    own = " next hop self;" if style.next_hop_self else ""
    yield f"ipv4 {{{own} import {'filter hosts' if style.filters == 'route-map' else 'all'}; export {out}; }};"


def _sessions(net: Drawn, name: str) -> Iterator[str]:
    indent = net.style.spaces
    for _, _, far, peer in net.sessions(name):
        lines = [f"neighbor {far} as {net.asns[peer]};", f'description "{peer}";']
        if net.style.inline:
            lines = [*_common(net, name), *lines]
        words = re.sub(r"\W", "_", peer)
        begin = f"protocol bgp to_{words}{'' if net.style.inline else ' from fabric'} {{\n"
        yield begin + "".join(f"{indent}{line}\n" for line in lines) + "}\n"
