"""The list of environment variables is that of the code, and says of itself what the docs of clients say."""

from __future__ import annotations

import re

from hpn.testbed.package import FOLDER, own_files
from hpn.testbed.variables import VARIABLES, Side
from tests.docs.pages import ROOT

_NAME = re.compile(r"\b(?:HPN|XDG)_[A-Z_]+\b")
_LIST = FOLDER / "testbed" / "variables.py"


def _in_the_code() -> set[str]:
    files = [path for kind in ("*.py", "*.sh") for path in own_files(kind)]
    return {name for path in files if path != _LIST for name in _NAME.findall(path.read_text())}


def test_every_variable_that_the_code_names_is_listed_and_no_other() -> None:
    assert set(VARIABLES) == _in_the_code()


def test_every_variable_that_a_client_is_told_is_on_the_page_of_clients() -> None:
    page = (ROOT / "docs" / "clients.md").read_text()
    assert [name for name, told in VARIABLES.items() if told.side is Side.CLIENT and f"`{name}`" not in page] == []
