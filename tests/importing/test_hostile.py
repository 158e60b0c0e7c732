"""Whatever is in a file, an import ends with a wiring or an InputError of one line for each mistake."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.testbed.errors import InputError
from hpn.testbed.importing.importer import SourceText
from hpn.testbed.importing.importers import IMPORTERS, import_network
from hpn.testbed.importing.telling import as_data, told, topology_text
from hpn.testbed.importing.wishes import wishes_of
from tests.importing.test_containerlab import LAB
from tests.importing.test_csv import CABLES
from tests.importing.test_netbox import CABLES as NETBOX_CABLES
from tests.importing.test_netbox import DEVICES, INTERFACES
from tests.importing.test_netlab import _transformed
from tests.importing.test_simai import _dual_plane
from tests.importing.test_sonic import LEAF1, LEAF2, SPINE3

SAMPLES = {
    "containerlab": [LAB.replace("hpn-asn: 65000", "hpn-asn: 65000, hpn-router-id: 10.0.0.1, hpn-spare: no")],
    "csv": [CABLES.replace("rate", "rate,a_ip,b_ip,primary")],
    "netlab": [json.dumps(_transformed())],
    "sonic": [LEAF1[1], LEAF2[1], SPINE3[1]],
    "netbox": [DEVICES[1], INTERFACES[1], NETBOX_CABLES[1]],
    "simai": [_dual_plane()],
}
_WORDS = st.sampled_from(
    ["", "null", "-1", "99999999999999999999", '"', "{", "}", "[", "]", "\n", ":", ",", "a b", "é", "\u2028", "é" * 50,
     "true", "0", "1e999", "leaf1", "gpu1", "eth1", "bond0", "tor", "10.0.0.1/33", "lo", "\x1b[2J", "'", "1.5"]
)  # fmt: skip


def test_there_is_a_sample_of_each_format() -> None:
    assert SAMPLES.keys() == IMPORTERS.keys()


@pytest.mark.parametrize("name", SAMPLES)
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_damaged_file_raises_nothing_but_an_input_error(name: str, data: st.DataObject) -> None:
    texts = list(SAMPLES[name])
    for _ in range(data.draw(st.integers(1, 3))):
        which = data.draw(st.integers(0, len(texts) - 1))
        text = texts[which]
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, min(len(text), begin + 12)))
        texts[which] = text[:begin] + data.draw(_WORDS) + text[end:]
    sources = [SourceText(f"x{number}", text) for number, text in enumerate(texts)]
    roles = ["leaf*=tor", "spine*=agg", "gpu*=host"] if name == "csv" else []
    wishes = wishes_of(roles, [], ["eth1+eth2"])
    problems: tuple[str, ...] = ()
    try:
        result = import_network(sources, wishes, name)
    except InputError as error:
        problems = error.problems
    assert all("\n" not in problem and len(problem) < 700 for problem in problems)
    if problems:
        return
    json.dumps(as_data(result))
    assert topology_text(result, ["x"])
    assert all(len(line) < 2000 for line in told(result))


@given(st.text(max_size=60), st.sampled_from(sorted(IMPORTERS)))
def test_any_text_raises_nothing_but_an_input_error(text: str, name: str) -> None:
    with suppress(InputError):
        import_network([SourceText("x", text)], wishes_of([], [], []), name)
