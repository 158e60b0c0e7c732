"""The lab as a ``mininet.net.Mininet``: its CLI, ``net.get``, ``node.cmd`` and ``pingAll`` work on our namespaces.

Nothing is created here: nodes attach to the namespaces under /run/netns, and interfaces to existing ones. Shells start
on first use, because Mininet's one bash per node costs 10 ms and 3 MB each (FACTS trap 8).
"""

from __future__ import annotations

import cmd
import os
import pty
import re
import select
from collections.abc import Callable, Sequence
from subprocess import PIPE, STDOUT, Popen
from typing import IO, Any, cast

from mininet.cli import CLI
from mininet.link import Intf
from mininet.log import error, output
from mininet.net import Mininet
from mininet.node import Node
from mininet.util import getincrementaldecoder

from hpn.testbed.fabric.model import Fabric, Port, Role
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import programs
from hpn.testbed.kernel.process.processes import piped
from hpn.testbed.kernel.process.sysfs import own_sys
from hpn.testbed.lab.wire import NETNS_DIR

_RATE = re.compile(r"[\d.]+ [KMGT]?bits/sec", re.IGNORECASE)
_ENDS = ("receiver", "sender")  # iperf3's labels in its last lines: the server's, the client's
_PROMPT = chr(127)  # Mininet's sentinel: Node.monitor detects the end of a command by it


class LabIntf(Intf):  # type: ignore[misc]  # Mininet has no types
    """An existing interface: addresses come from the fabric, nothing is configured."""

    def config(self, **_params: object) -> dict[str, object]:
        """Leave the interface as the lab configured it."""
        return {}

    def setAddresses(self, address: str | None, mac: str) -> None:
        """Set the addresses that Mininet shows for the interface."""
        self.mac = mac
        if address is not None:
            self.ip, self.prefixLen = address.split("/")

    def delete(self) -> None:
        """Do nothing: the lab owns its interfaces, and Mininet must not delete them."""

    def status(self) -> str:
        """Return the kernel's state: OK with carrier, DOWN without, MISSING when it is gone."""
        said, _error, code = self.node.pexec("ip", "-o", "link", "show", "dev", self.name)
        if code:
            return "MISSING"
        return "OK" if "LOWER_UP" in said else "DOWN"


class LabNode(Node):  # type: ignore[misc]  # Mininet has no types
    """A Mininet node on an existing namespace, with a shell that starts on first use."""

    def __init__(self, name: str, *, namespace: NetNs, **params: object) -> None:
        self.namespace = namespace
        self.shell: Popen[bytes] | None
        super().__init__(name, **params)

    @classmethod
    def checkSetup(cls) -> None:
        """Skip Mininet's checks: neither mnexec nor ifconfig is needed."""

    def startShell(self, mnopts: str | None = None) -> None:
        """Do nothing; Mininet calls this at construction, but the shell starts on first use."""

    def _ensure_shell(self) -> None:
        if self.shell:
            return
        self.master, self.slave = pty.openpty()
        self.shell = self.popen(
            ["env", f"PS1={_PROMPT}", "bash", "--norc", "--noediting", "-is", f"mininet:{self.name}"],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
        )
        self.stdin = self.stdout = os.fdopen(self.master, "r")
        self.pid = self.shell.pid
        self.pollOut = select.poll()
        self.pollOut.register(self.stdout)
        self.outToNode[self.stdout.fileno()] = self
        self.inToNode[self.stdin.fileno()] = self
        self.decoder = getincrementaldecoder()
        self.execed, self.lastCmd, self.lastPid, self.readbuf, self.waiting = False, None, None, "", False
        while self.read(1024)[-1] != _PROMPT:
            self.pollOut.poll()
        self.cmd("unset HISTFILE; stty -echo; set +m")

    def cmd(self, *args: object, **kwargs: object) -> str:
        """Run a command and return its output, as Mininet's."""
        self._ensure_shell()
        return cast("str", super().cmd(*args, **kwargs))

    def sendCmd(self, *args: object, **kwargs: object) -> None:
        """Send a command as Mininet does, after starting the shell; printPid needs mnexec and is ignored."""
        self._ensure_shell()
        kwargs.pop("printPid", None)
        super().sendCmd(*args, **kwargs)

    def popen(self, *args: object, **kwargs: Any) -> Popen[bytes]:  # Any: forwards all arguments of Popen
        """Start a command in the node's namespace: a list, words, or one string with spaces as in Mininet."""
        words = args[0] if len(args) == 1 else list(args)
        if isinstance(words, str):
            words = words.split()
        defaults: dict[str, Any] = {"stdout": PIPE, "stderr": PIPE, **kwargs}
        defaults.pop("mncmd", None)
        defaults["preexec_fn"] = _with_own_sys(defaults.get("preexec_fn"))
        with self.namespace.entered():
            return cast("Popen[bytes]", Popen([str(word) for word in cast("list[object]", words)], **defaults))

    def config(self, **_params: object) -> dict[str, object]:
        """Do nothing: the lab has configured the node already."""
        return {}

    def stop(self, deleteIntfs: bool = False) -> None:
        """End the shell; interfaces belong to the lab."""
        self.terminate()


def _with_own_sys(also: Callable[[], object] | None) -> Callable[[], None]:
    """Return a function for a new process: it mounts its node's /sys, then calls ``also``."""

    def prepare() -> None:
        own_sys()
        if also is not None:
            also()

    return prepare


class LabNet(Mininet):  # type: ignore[misc]  # Mininet has no types
    """A Mininet whose nodes are a running lab's."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        Mininet.inited = True  # its init() would change limits of the whole machine, which the lab does not need
        super().__init__(controller=None, build=False, host=LabNode, switch=LabNode)
        for node in fabric.nodes:
            space = NetNs(node.name, os.open(NETNS_DIR / node.name, os.O_RDONLY | os.O_CLOEXEC))
            add = self.addHost if node.role is Role.HOST else self.addSwitch
            add(node.name, cls=LabNode, namespace=space)
        for nic in fabric.nics:
            LabIntf(nic.lag, node=self[nic.host], moveIntfFn=_stay).setAddresses(f"{nic.ip}/{nic.prefix_len}", nic.mac)
        for link in fabric.links:
            cable = _Cable(self._intf(link.lower), self._intf(link.upper))
            cable.intf1.link = cable.intf2.link = cable
            self.links.append(cable)
        self.built = True

    def iperf(
        self,
        hosts: Sequence[LabNode] | None = None,
        l4Type: str = "TCP",
        udpBw: str = "10M",
        fmt: str | None = None,
        seconds: int = 5,
        port: int = 5001,
    ) -> list[str]:
        """Measure with iperf3 as Mininet does; return the server's and client's rate, for UDP after the target rate."""
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server}\n")
        if programs.find("iperf3") is None:
            error("iperf3 is missing: apt install iperf3\n")
            return []
        wanted = ["-u", "-b", udpBw] if l4Type == "UDP" else []
        rates = iperf3_rates(client, server, [*wanted, *(["-f", fmt] if fmt else []), "-t", str(seconds)], port)
        found = [udpBw, *rates] if l4Type == "UDP" else rates
        output(f"*** Results: {found}\n")
        return found

    def _intf(self, port: Port) -> LabIntf:
        found = LabIntf(port.name, node=self[port.node], moveIntfFn=_stay)
        found.setAddresses(port.address, port.mac)
        return found


class _Cable:
    """A link as Mininet's CLI needs it: two interfaces and a status."""

    def __init__(self, intf1: LabIntf, intf2: LabIntf) -> None:
        self.intf1, self.intf2 = intf1, intf2

    def status(self) -> str:
        return f"({self.intf1.status()} {self.intf2.status()})"

    def stop(self) -> None:
        """Do nothing: the lab owns the cable."""

    def __str__(self) -> str:
        return f"{_end(self.intf1)}<->{_end(self.intf2)}"

    def other(self, intf: LabIntf) -> LabIntf:
        return self.intf2 if intf is self.intf1 else self.intf1


def _end(intf: LabIntf) -> str:
    """Return 'node:interface': interface names are not unique in a lab, unlike Mininet's h1-eth0."""
    return f"{intf.node}:{intf}"


def iperf3_rates(client: LabNode, server: LabNode, options: Sequence[str], port: int) -> list[str]:
    """Return the rates that iperf3 reports for server and client, such as '189 Mbits/sec', or its error message."""
    listening = server.popen("iperf3", "-s", "-1", "-p", str(port), "--forceflush", stderr=STDOUT)
    for line in piped(listening.stdout):
        if b"listening" in line:
            break
    sent = client.popen("iperf3", "-c", server.IP(), "-p", str(port), *options, stderr=STDOUT)
    client_said, _ = sent.communicate()
    if sent.returncode:
        listening.kill()
    listening.communicate()
    by_end = {end: _RATE.findall(line) for line in client_said.decode().splitlines() for end in _ENDS if end in line}
    if not all(by_end.get(end) for end in _ENDS):
        return [client_said.decode(errors="replace").strip().splitlines()[-1] if client_said else "iperf3 said nothing"]
    return [by_end[end][-1] for end in _ENDS]


class LabCLI(CLI):  # type: ignore[misc]  # Mininet has no types
    """Mininet's CLI with support for dots in node names."""

    prompt = "hpn> "
    identchars = cmd.IDENTCHARS + ".-"

    def do_net(self, _line: str) -> None:
        """List network connections."""
        for node in self.mn.values():
            ends = (f"{intf}:{_end(intf.link.other(intf))}" for intf in node.intfList() if intf.link)
            output(" ".join([node.name, *ends]) + "\n")


def shell(fabric: Fabric, stdin: IO[str], script: str | None = None) -> None:
    """Run Mininet's CLI on the lab whose sandbox the caller is in; return when the user leaves."""
    net = LabNet(fabric)
    LabCLI(net, stdin=stdin, script=script)
    for node in [*net.hosts, *net.switches]:
        node.stop()


def _stay(*_args: object) -> None:
    """Do nothing: interfaces are in the right namespaces already."""
