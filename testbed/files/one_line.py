"""Plain data as YAML on one line, for files that hpn writes for its users. Pure.

Changes when the format of such files changes. ``testbed.files.document`` reads the same data back.
"""

from __future__ import annotations

import json
import re

from hpn.testbed.files.document import Plain

_BARE = re.compile(r"[A-Za-z][A-Za-z0-9 ._%-]*(:[A-Za-z][A-Za-z0-9._-]*)?|[0-9][0-9.]* ?[a-zA-Z%]+")
_READ_OTHERWISE = re.compile(r"true|false|yes|no|on|off|null", re.IGNORECASE)


def one_line(value: Plain) -> str:
    """Format the value as YAML; text is quoted where it would be ambiguous."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{one_line(key)}: {one_line(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(one_line, value))}]"
    if isinstance(value, str) and _BARE.fullmatch(value) and not _READ_OTHERWISE.fullmatch(value) and value[-1] != " ":
        return value
    return json.dumps(value)
