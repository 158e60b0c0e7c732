"""The edits that plant mistakes in a correct repository: each returns it with one mistake, and the element that has it.

Changes when a mistake is planted in another way.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.misconfigured.drawn import Cable, Host
from tests.misconfigured.frr import ORIGIN
from tests.misconfigured.repository import Repository


@dataclass(frozen=True)
class Planted:
    """A repository with one mistake. ``element``: what names it; ``tried``: failures of an audit, none: the usual."""

    repository: Repository
    element: str
    tried: tuple[str, ...] = ()


def usual(repository: Repository, kinds: Sequence[str]) -> tuple[str, ...]:
    """Elements that stand for their kinds: a link, a leaf."""
    leaf = (repository.net.leaves[0],) if "switch" in kinds else ()
    return (access(repository.net.hosts[0]), *leaf)


def access(host: Host, port: int = 0) -> str:
    """Name of a host's link."""
    return f"{host.name}:eth{port}"


def fabric_link(cable: Cable) -> str:
    """Name of a link between switches."""
    return f"{cable.leaf}:{cable.leaf_port}"


def _leaf(repository: Repository, dice: random.Random) -> str:
    """A leaf with FRR, if there is one."""
    net = repository.net
    return dice.choice(net.of("frr", net.leaves) or net.leaves)


def one_path(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    old = f"maximum-paths {repository.net.style.most_paths}"
    return Planted(repository.edited(leaf, old, "maximum-paths 1"), leaf)


def _without(repository: Repository, switch: str, *words: str) -> Repository:
    """With no line of a configuration that has any of these words; it must have one."""
    lines = repository.configs[switch].splitlines(keepends=True)
    kept = "".join(line for line in lines if not any(word in line for word in words))
    assert kept != repository.configs[switch], f"{switch} has none of {words}"
    return replace(repository, configs={**repository.configs, switch: kept})


_BFD = ("bfd on;", " bfd profile fast")


def no_bfd(repository: Repository, dice: random.Random) -> Planted:
    for switch in repository.configs:
        repository = _without(repository, switch, *_BFD)
    link = fabric_link(dice.choice(repository.net.cables))
    return Planted(repository, link, (link,))


def bfd_at_one_end(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    return Planted(_without(repository, leaf, *_BFD), f"has BFD with {leaf}")


def no_allowas_in(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    return Planted(_without(repository, leaf, "allowas-in", "allow local as"), leaf)


def _same_asn(repository: Repository, at: int, other: int) -> tuple[Repository, str]:
    """The network in which two leaves have one ASN; the second leaf."""
    net = repository.net
    leaf = net.leaves[other]
    return Repository.of(replace(net, asns={**net.asns, leaf: net.asns[net.leaves[at]]})), leaf


def asn_in_both_planes(repository: Repository, dice: random.Random) -> Planted:
    changed, leaf = _same_asn(repository, *dice.choice(((0, 1), (2, 3))))
    return Planted(changed, leaf)


def asn_of_a_rack(repository: Repository, dice: random.Random) -> Planted:
    changed, leaf = _same_asn(repository, *dice.choice(((0, 1), (2, 3))))
    return Planted(changed, leaf)


def host_filtered(repository: Repository, dice: random.Random) -> Planted:
    leaf, old = _leaf(repository, dice), "ip prefix-list HOSTS seq 10"
    host = dice.choice([host for host in repository.net.hosts if leaf in host.leaves])
    deny = f"ip prefix-list HOSTS seq 5 deny {host.ip}/32\n"
    return Planted(repository.edited(leaf, old, deny + old), f"{host.ip}/32")


def system_id(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    return Planted(repository.with_key("02:00:00:00:77:01", "wiring", "nodes", leaf, "system_id"), leaf)


def mtu(repository: Repository, dice: random.Random) -> Planted:
    links = repository.topology["wiring"]["links"]
    at = dice.choice([number for number, link in enumerate(links) if "addresses" in link])
    changed = [{**link, "mtu": 1500} if number == at else link for number, link in enumerate(links)]
    return Planted(repository.with_key(changed, "wiring", "links"), "-".join(links[at]["ends"]))


def same_seed(repository: Repository, dice: random.Random) -> Planted:
    return Planted(repository.with_key("one", "ecmp_seeds"), "seed")


def _everywhere(repository: Repository, edit: Callable[[str], str]) -> Repository:
    configs = {name: edit(text) for name, text in repository.configs.items()}
    assert configs != repository.configs
    return replace(repository, configs=configs)


def hold_timer(repository: Repository, dice: random.Random) -> Planted:
    style = repository.net.style
    changed = _everywhere(
        repository,
        lambda text: (
            text.replace(f"timers bgp {style.keepalive_s} {style.hold_s}", "timers bgp 60 180")
            .replace(f"hold time {style.hold_s};", "hold time 180;")
            .replace(f"keepalive time {style.keepalive_s};", "keepalive time 60;")
        ),
    )
    link = fabric_link(dice.choice(repository.net.cables))
    return Planted(changed, link, (link,))


def no_relax(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    return Planted(repository.edited(leaf, " bgp bestpath as-path multipath-relax\n", ""), leaf)


def another_origin(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    host = next(host for host in repository.net.hosts if leaf in host.leaves)
    return Planted(repository.edited(leaf, ORIGIN, "redistribute kernel"), f"{host.ip}/32")


def no_graceful_shutdown(repository: Repository, dice: random.Random) -> Planted:
    assert all("graceful-shutdown" not in text for text in repository.configs.values())
    return Planted(repository, "graceful")


def wrong_address(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    _, _, far, _ = dice.choice(repository.net.sessions(leaf))
    parts = far.split(".")
    wrong = ".".join([*parts[:3], str(int(parts[3]) + 100)])
    return Planted(
        repository.edited(leaf, f"neighbor {far} ", f"neighbor {wrong} "), f"{leaf} has no link to neighbour {wrong}"
    )


def static_route(repository: Repository, dice: random.Random) -> Planted:
    net = repository.net
    host, spine = dice.choice(net.hosts), dice.choice(net.of("frr", net.spines))
    routes = [f"ip route {host.ip}/32 {far}\n" for _, _, far, leaf in net.sessions(spine) if leaf in host.leaves]
    link = access(host)
    return Planted(repository.edited(spine, "router bgp", f"{''.join(routes)}!\nrouter bgp", times=1), link, (link,))


def no_log(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    return Planted(repository.edited(leaf, " bgp log-neighbor-changes\n", " no bgp log-neighbor-changes\n"), leaf)


def deny_first(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    host = next(host for host in repository.net.hosts if leaf in host.leaves)
    return Planted(repository.edited(leaf, "seq 20 deny any", "seq 5 deny any"), f"{host.ip}/32")


def update_delay(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    old = " bgp log-neighbor-changes\n"
    return Planted(repository.edited(leaf, old, f"{old} update-delay 60\n"), leaf, (leaf,))


def no_next_hop_self(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    if repository.net.daemons[leaf] == "bird":
        return Planted(repository.edited(leaf, " next hop self;", ""), leaf)
    return Planted(_without(repository, leaf, "next-hop-self"), leaf)


def wrong_vrf(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    old = f"router bgp {repository.net.asns[leaf]}\n"
    return Planted(repository.edited(leaf, old, f"{old[:-1]} vrf TENANT\n"), f"{leaf}/frr.conf")


def ttl_security(repository: Repository, dice: random.Random) -> Planted:
    leaf = _leaf(repository, dice)
    port, _, far, peer = dice.choice(repository.net.sessions(leaf))
    old = f" neighbor {far} description {peer}\n"
    return Planted(repository.edited(leaf, old, f"{old} neighbor {far} ttl-security hops 1\n"), f"{leaf}:{port}")


_CONNECT = r"(timers connect |connect retry time ){}\b"


def connect_timer(repository: Repository, dice: random.Random) -> Planted:
    style, leaf = repository.net.style, _leaf(repository, dice)
    changed = _everywhere(repository, lambda text: re.sub(_CONNECT.format(style.connect_s), r"\g<1>120", text))
    return Planted(changed, leaf, (leaf, fabric_link(next(c for c in repository.net.cables if c.leaf == leaf))))
