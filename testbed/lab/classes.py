"""Whether this kernel can give the second traffic class a queue of its own at a switch's ports."""

from __future__ import annotations

import os
from functools import partial

from testbed.errors import MachineError
from testbed.fabric.marking import frame_bytes, quanta
from testbed.fabric.spec import FabricSpec
from testbed.kernel import ns
from testbed.kernel.htb import add_fifo, two_queues
from testbed.kernel.netlink import Netlink
from testbed.kernel.red import LOOPBACK, ROOT


def check(spec: FabricSpec) -> None:
    """MachineError, naming the way out, when the topology asks for it and the kernel cannot.

    Needs the right to make network namespaces.
    """
    wanted = spec.second_class
    if wanted is None:
        return
    probe = ns.create("class-probe")
    link = Netlink(probe)
    fifo = partial(add_fifo, LOOPBACK, 8 * frame_bytes(spec))
    try:
        link.run(list(two_queues(LOOPBACK, wanted.dscp, quanta(spec, wanted.share), fifo, ROOT)))
    except OSError as error:
        way_out = "modprobe sch_htb cls_u32, run it with --engine uml --virtual-time, or leave second_class out"
        text = f"no queue for a second class in this kernel ({error.strerror or error}); {way_out}"
        raise MachineError(text) from error
    finally:
        link.close()
        os.close(probe.fd)
