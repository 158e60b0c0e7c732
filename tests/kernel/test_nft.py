"""libnftables in a process with more open files than select() can look at."""

from __future__ import annotations

import os
import resource

import pytest

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.nftables.nft import Nft, NftError


@pytest.mark.kernel
def test_contexts_work_beyond_descriptor_1024() -> None:
    first = Nft(ns.create("first"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    while os.open(os.devnull, os.O_RDONLY) < 1100:
        pass
    later = [Nft(ns.create(f"later{i}")) for i in range(3)]
    for number, each in enumerate((first, *later)):
        each.run(f"table inet t{number} {{ }}")
    for number, each in enumerate((first, *later)):
        assert each.run("list tables").strip() == f"table inet t{number}", "every context has its own namespace"
    later[0].close()
    with pytest.raises(NftError, match="closed"):
        later[0].run("list tables")
    with pytest.raises(NftError, match="nonsense"):
        later[1].run("nonsense")
    assert later[2].run("list tables").strip() == "table inet t3"


@pytest.mark.kernel
def test_a_closed_context_gives_back_its_descriptors() -> None:
    Nft(ns.create("warm")).close()
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        made = ns.create("x")
        Nft(made).close()
        os.close(made.fd)
    assert sorted(os.listdir("/proc/self/fd")) == before
