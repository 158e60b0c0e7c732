"""The topology file: the user's description of a fabric, validated on input.

A ``FabricSpec`` is the only input of ``testbed.fabric.build``. Rates are real ones ('200G'); ``scale``
divides them for the emulation. Defaults are HPN's own numbers where the paper gives one.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hpn.testbed.fabric.profiles import LAB, PROFILES
from hpn.testbed.fabric.srv6_spec import Srv6Spec
from hpn.testbed.fabric.switch_spec import SwitchSpec
from hpn.testbed.fabric.values import MOST_PORTS, Mac, Rate, Strict
from hpn.testbed.fabric.wired.wiring_spec import WiringSpec
from hpn.testbed.files.words import OneOf
from hpn.testbed.routing.pathcontrol.policies import DEFAULT, OFF, PATH_POLICIES, PathPolicy

SHARED_SYSTEM_ID = "00:00:5e:00:01:01"
"""HPN's shared LACP system ID: a VRRP virtual-router MAC, which no host can own (paper section 4.2)."""

QUEUE_AFFINITY: Literal["queue-affinity"] = "queue-affinity"
"""Value of ``nic.port_selection``."""

WIRED = "wired"
"""Architecture of a network that its own file wires."""

CorePorts = Literal["preset", "hash"]
LacpRate = Literal["fast", "slow"]
LACP_PERIOD_MS = {"fast": 1_000, "slow": 30_000}
"""Interval between two LACPDUs (IEEE 802.1AX-2020, 6.4.4)."""


class LacpSpec(Strict):
    """LACP as HPN alters it. A rate asks the partner for a LACPDU every 1 s (fast) or 30 s (slow), 802.1AX 6.4.4.

    ``mode``, ``mux``, ``wait_to_restore_ms`` and ``reload_delay_s`` are the ToRs'; hosts are active and coupled, as
    Linux bonding is unless told otherwise. ``aggregate_wait_ms`` is the ToRs' and, on the nft datapath, the hosts'.
    """

    rate: LacpRate = Field(default="fast", description="what ToRs ask of hosts, and hosts of ToRs")
    host_rate: LacpRate | None = Field(default=None, description="what hosts ask of ToRs; left out: as rate")
    miimon_ms: int | None = Field(
        default=None,
        ge=0,
        le=60_000,
        description="how often a host looks at carrier; left out: Linux bonding 10, nft 0 (at once)",
    )
    system_id: Mac = SHARED_SYSTEM_ID
    down_delay_ms: int = Field(
        default=0,
        ge=0,
        le=3_600_000,
        description="a host's LAG goes on using a port so long after it lost carrier; needs lag: nft",
    )
    port_id_offset: int = Field(default=300, ge=257, le=8192, description="per ToR of a set: offset, 2 x offset, ...")
    tor_system_ids: dict[str, Mac] = Field(default_factory=dict, description="ToR name to a system ID of its own")
    mode: Literal["active", "passive"] = Field(default="active", description="passive: speaks when spoken to")
    mux: Literal["coupled", "independent"] = Field(
        default="coupled", description="independent: distributes to a host only once that collects"
    )
    aggregate_wait_ms: int = Field(
        default=200, ge=0, le=60_000, description="for ports to join together; 802.1AX and Linux bonding: 2000"
    )
    wait_to_restore_ms: int = Field(
        default=0, ge=0, le=3_600_000, description="a port that failed stays out so long after it is well again"
    )
    reload_delay_s: int = Field(
        default=30, ge=0, le=3600, description="longest wait of a ToR that reboots for its routes; 0 = no wait"
    )

    @property
    def hosts_ask(self) -> LacpRate:
        """LACPDU rate that hosts ask of ToRs."""
        return self.host_rate or self.rate

    def under(self, profile: str) -> LacpSpec:
        """Return these settings with a profile's values for keys that are not set; they count as not set still."""
        values = {key: value for key, value in PROFILES[profile].lacp.items() if key not in self.model_fields_set}
        if not values:
            return self
        return LacpSpec.model_construct(set(self.model_fields_set), **{**dict(self), **values})


class BfdSpec(Strict):
    """BFD beside every BGP session (RFC 5880, single hop RFC 5881), which ends with it.

    A neighbour that is not heard for ``multiplier`` intervals is gone. Both ends send every ``interval_ms``, less up to
    a quarter at random (RFC 5880 6.8.7).
    """

    interval_ms: int = Field(default=100, ge=10, le=60_000)
    multiplier: int = Field(default=3, ge=2, le=50)

    @property
    def detect_ms(self) -> int:
        """Detection time: silence of this length ends a session."""
        return self.interval_ms * self.multiplier


class BgpSpec(Strict):
    """BGP timers in seconds (RFC 4271 section 10). BIRD's own defaults do not restore within 40 s after a flap."""

    daemon: str = Field(default="bird", description="what speaks BGP in every switch")
    asn: Literal["per-tier", "per-switch"] = Field(
        default="per-tier",
        description="per-switch: paths may have valleys, and switches hunt for paths after a withdrawal",
    )
    hold_s: int = Field(default=9, ge=3, le=65535)
    keepalive_s: int = Field(default=3, ge=1, le=21845)
    connect_delay_s: int = Field(default=1, ge=1, le=300)
    connect_retry_s: int = Field(default=1, ge=1, le=300)
    error_wait_min_s: int = Field(default=1, ge=1, le=300)
    error_wait_max_s: int = Field(default=2, ge=1, le=300)
    fib_lag_ms: int = Field(
        default=0,
        ge=0,
        le=600_000,
        description="a booted switch forwards so long after its first session; SONiC: up to 10000",
    )
    bfd: BfdSpec | None = Field(default=None, description="left out: no BFD; {}: every 100 ms, three missing")

    @property
    def valleys(self) -> bool:
        """True if a path may go down and up again: ToR - Agg - ToR - Agg - ToR."""
        return self.asn == "per-switch"


class NicSpec(Strict):
    """Choice of the port of a NIC's LAG that a queue pair sends by.

    ``hash``: by addresses and UDP ports, as the LAG does. ``queue-affinity``: a queue pair is bound to a port when it
    is made: by the driver, or by the library that makes it (``affinity``). Mlx5's driver maps the queue pairs of a lost
    port to another one, and later back: it queues the command at once when the LAG changes (lag.c, mlx5_do_bond_work),
    and again after 1 s where it misses a lock. How long firmware takes is not published: the range is an assumption,
    each time is drawn from it.
    """

    port_selection: Literal["hash", "queue-affinity"] = Field(
        default="hash", description="queue-affinity: a queue pair is bound to a port when it is made"
    )
    affinity: Literal["in-turn", "explicit"] = Field(
        default="in-turn",
        description="in-turn: the driver counts queue pairs; explicit: the library spreads those that send",
    )
    rebind_least_ms: int = Field(
        default=1, ge=0, le=60_000, description="least time from a change of the LAG to its queue pairs' new port"
    )
    rebind_most_ms: int = Field(default=10, ge=0, le=60_000, description="most of that time; drawn evenly, assumed")

    @property
    def binds(self) -> bool:
        """True if queue pairs are bound to ports."""
        return self.port_selection == QUEUE_AFFINITY


class PathControlSpec(Strict):
    """Host-switch path control (see docs/path-control.md): the answer to the dual-plane gap."""

    enabled: bool = Field(default=True, description="no: the policy off")
    policy: Annotated[str, OneOf(PATH_POLICIES)] = Field(
        default=DEFAULT, description="what a host does when a destination is gone behind one of its ports"
    )
    refresh_ms: int = Field(
        default=500, ge=50, le=60_000, description="interest refresh; also bounds recovery from a lost notice"
    )
    gather_ms: int = Field(
        default=2, ge=0, le=1000, description="after a notice to a host its ToR gathers further news so long"
    )
    hold_ms: int = Field(
        default=1000,
        ge=0,
        le=60_000,
        description="hold of a destination after its second loss, doubled with each further one; 0 = no damping",
    )
    hold_max_ms: int = Field(
        default=16_000,
        ge=1,
        le=3_600_000,
        description="longest hold; twice that without a loss, and all is forgotten",
    )

    @property
    def chosen(self) -> PathPolicy:
        """The policy in force."""
        return PATH_POLICIES[self.policy if self.enabled else OFF]


class StackSpec(Strict):
    """Stacked ToRs: their software (a ToR upgraded alone makes its stack one of mixed versions) and their timers.

    The paper gives no timers. Three missing keepalives mean a dead peer, to be known before sync counts as lost.
    """

    version: str = Field(default="1", min_length=1, max_length=32)
    tor_versions: dict[str, str] = Field(default_factory=dict, description="ToR name to a version of its own")
    keepalive_ms: int = Field(default=100, ge=10, le=300, description="out of band, between the control planes")
    sync_ms: int = Field(default=100, ge=10, le=300, description="over the peer link, between the data planes")
    sync_hold_ms: int = Field(default=1000, ge=1000, le=60_000, description="so long without sync, and it is lost")


class EcnSpec(Strict):
    """Marking at the ports of all switches, in bytes of a port's queue as it is at the emulated rate (``queue_ms``).

    Nothing is marked below kmin, everything from kmax on, in between a share that rises to pmax.
    """

    kmin_bytes: int = Field(ge=1, le=10**9)
    kmax_bytes: int = Field(ge=1, le=10**9)
    pmax: float = Field(gt=0, le=1, description="share marked just below kmax")
    marker: Literal["auto", "red", "nft"] = Field(
        default="auto", description="red marks by the queue itself; nft by a phantom queue in packets, at kmin"
    )


class SecondClassSpec(Strict):
    """A queue of its own for the second traffic class (a job's checkpoints) at the ports of all switches.

    It is as long as a port's only queue would be. Both have something to send: the class has ``share`` of the port.
    """

    dscp: int = Field(default=8, ge=1, le=63, description="of the class's packets; 8 is CS1, low priority (RFC 4594)")
    share: float = Field(ge=0.05, le=0.95, description="of a port while both queues have something; alone it has all")


MTU_WITH_SRV6 = 4220


class FabricSpec(Strict):
    """One topology file. Counts are per the unit named; ``hpn topology new`` writes a commented example."""

    name: str = Field(default="custom", pattern=r"^[a-z][a-z0-9-]{0,30}$", examples=["my-fabric"])
    architecture: str = Field(default="hpn", description="how hosts, ToRs and the tiers above are wired")
    pods: int = Field(default=1, ge=1, le=512)
    segments: int = Field(default=2, ge=1, le=256, description="per pod")
    hosts: int = Field(default=2, ge=1, le=4096, description="active hosts per segment")
    spare_hosts: int = Field(default=0, ge=0, le=1024, description="per segment")
    rails: int = Field(default=1, ge=1, le=64, description="NICs per host")
    planes: int = Field(default=2, ge=1, le=MOST_PORTS, description="hpn: networks that share nothing above the NIC")
    nic_ports: int | None = Field(
        default=None,
        ge=1,
        le=MOST_PORTS,
        description="ports of a NIC, each to a ToR of its own; left out: one for each plane, or two",
    )
    aggs: int = Field(default=2, ge=0, le=1024, description="per plane and pod; rail-only: rail; same-rail: rail, port")
    uplinks: int = Field(
        default=1, ge=1, le=64, description="parallel links of each ToR to each Agg, or to each ToR it joins"
    )
    dimensions: list[Annotated[int, Field(ge=1, le=256)]] | None = Field(
        default=None,
        min_length=1,
        max_length=6,
        description="torus, full-mesh: switches along each dimension; their product is pods x segments",
        examples=[[4, 3]],
    )
    global_links: int = Field(
        default=1, ge=1, le=64, description="dragonfly: links of each switch to switches of other pods, its groups"
    )
    cores: int = Field(default=0, ge=0, le=4096, description="Core switches per plane; 0 = no core tier")
    core_groups: int = Field(default=1, ge=1, le=1024, description="an Agg reaches only the Cores of its own group")
    core_ports: Literal["auto", CorePorts] = Field(
        default="auto",
        description="how a Core picks a next hop; auto: preset per ingress port, hash where that is usual",
    )
    nic_port_rate: Rate = Field(default=200 * 10**9, description="each port of a NIC")
    uplink_rate: Rate = Field(default=400 * 10**9, description="each link between a ToR and an Agg, or another ToR")
    core_rate: Rate = Field(default=400 * 10**9, description="each link between an Agg and a Core")
    switch_capacity: Rate = Field(default=51_200 * 10**9, description="most that all ports of a switch add up to")
    scale: int = Field(default=1000, ge=1, le=10**6, description="emulated rate = real rate / scale")
    mtu: int = Field(
        default=4200,
        ge=1280,
        le=9216,
        description="bytes; path MTU 4096 needs 4200, 4220 in SRv6",
    )
    queue_ms: float = Field(default=20.0, gt=0, le=1000, description="depth of a port's queue at its own rate")
    ecn: EcnSpec | None = Field(default=None, description="what switches mark; left out: nothing")
    second_class: SecondClassSpec | None = Field(
        default=None, description="left out: all traffic waits in one queue at each port"
    )
    switch: SwitchSpec | None = Field(
        default=None, description="shared buffers with classes, PFC and trimming; virtual time only"
    )
    srv6: Srv6Spec | None = Field(
        default=None, description="static paths by micro-SIDs, beside BGP; left out: none; {}: block fc00:0::/32"
    )
    soft_roce: bool = Field(
        default=False, description="an RDMA device (rdma_rxe) on every NIC, for programs that speak verbs; root only"
    )
    seed: int = Field(default=1, ge=0, le=2**31 - 1)
    ecmp_seeds: Literal["per-switch", "one"] = Field(
        default="per-switch", description="one: every switch hashes alike, as boxes left at their vendor's default do"
    )
    wiring: WiringSpec | None = Field(
        default=None, description="architecture wired: every node and link, by names of your own"
    )
    lag: str = "auto"
    profile: Annotated[str, OneOf(PROFILES)] = Field(
        default=LAB, description="what hosts are like: the defaults of lacp; production is a real fleet's"
    )
    nic: NicSpec = NicSpec()
    lacp: LacpSpec = LacpSpec()
    stack: StackSpec = StackSpec()
    bgp: BgpSpec = BgpSpec()
    path_control: PathControlSpec = PathControlSpec()

    @model_validator(mode="after")
    def _profiled(self) -> Self:
        """Give ``lacp`` the profile's values, which later layers may replace: they count as not set.

        A wired network has path control only where its file says so: production networks have none. SRv6 needs a larger
        MTU for the same packets.
        """
        if self.srv6 is not None and "mtu" not in self.model_fields_set:
            object.__setattr__(self, "mtu", MTU_WITH_SRV6)
        if self.architecture == WIRED and "path_control" not in self.model_fields_set:
            object.__setattr__(self, "path_control", PathControlSpec(enabled=False))
        object.__setattr__(self, "lacp", self.lacp.under(self.profile))
        return self

    @property
    def ports_of_nic(self) -> int:
        """Ports of a NIC where the architecture gives it several: one for each plane unless ``nic_ports`` says so."""
        return self.nic_ports or self.planes

    @property
    def has_cores(self) -> bool:
        """True if Cores join pods, or a wiring has Cores."""
        wired = self.wiring is not None and any(node.role == "core" for node in self.wiring.nodes.values())
        return wired or (self.pods > 1 and self.cores > 0)
