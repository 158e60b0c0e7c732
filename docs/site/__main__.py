"""``python -m docs.site FOLDER``: the site in FOLDER/html. Exit code 1 where anything is amiss, 3 without Sphinx."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from docs.site.stage import stage


def main(folder: str) -> int:
    """Make the pages, then the site; every warning is an error."""
    missing = [name for name in ("sphinx", "furo", "myst_parser") if find_spec(name) is None]
    if missing:
        way_out = "pip install -r docs/site/requirements.lock, or hpn[docs]"
        print(f"the site needs Sphinx, and there is no {', '.join(missing)}: {way_out}", file=sys.stderr)
        return 3
    from sphinx.cmd.build import main as build

    out = Path(folder)
    stage(out / "source")
    conf = str(Path(__file__).parent)
    options = ["-b", "html", "-W", "--keep-going", "-q", "-E", "-c", conf]
    code = int(build([*options, str(out / "source"), str(out / "html")]))
    if code == 0:
        print(out / "html" / "index.html")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or ("build/site",)))
