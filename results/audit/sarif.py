"""SARIF 2.1.0 of an audit: a result for each broken promise and each single point. Pure.

Changes when code hosts, which show such files beside the topology, should receive something else. Source: OASIS
Static Analysis Results Interchange Format 2.1.0.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from urllib.parse import quote

from hpn.results.audit.model import ERROR, Answer, Row
from hpn.results.audit.text import some
from hpn.results.judge.verdict import Check, Outcome
from hpn.results.text.checks import describe

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SINGLE_POINT = "single-point"
_NOT_KNOWN = "inconclusive"
_SHORT = "short-route"
_RULES: Mapping[str, str] = {
    _SINGLE_POINT: "One element alone cuts off a NIC or host for as long as it is down.",
    _NOT_KNOWN: "A failure was inconclusive or could not be tried.",
    _SHORT: "Host routes have fewer next hops than links allow before anything fails.",
}
_FINGERPRINT = "hpnFailure/v1"


def audit_sarif(answer: Answer, file: str, version: str) -> str:
    """Return the report as text. ``file``: the topology as named by the user; ``version``: of hpn."""
    found = [_of(line, (), _SHORT, "warning", f"{line}.", file) for line in answer.short_routes]
    found += [_result(row, *each, file) for row in answer.worst_first for each in _findings(row)]
    rules = {each["ruleId"]: None for each in found}
    promises = {_rule(check): check.text for row in answer.rows for check in row.checks}
    texts = {**_RULES, **promises}
    driver = {
        "name": "hpn audit",
        "version": version,
        "rules": [{"id": rule, "shortDescription": {"text": texts[str(rule)]}} for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "results": found,
        "columnKind": "unicodeCodePoints",
        "properties": {"fabric": answer.topology.name, "engine": answer.engine, "tried": len(answer.rows)},
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _findings(row: Row) -> Iterator[tuple[str, str, str]]:
    """Yield rule, level and text of each finding of a row."""
    if row.single_point:
        yield _SINGLE_POINT, "warning", f"{row.words} cuts off {some(row.cut_off)} for as long as it lasts."
    if row.outcome == Outcome.FAIL.value:
        for check in row.broken:
            yield _rule(check), "error", f"{row.words} breaks a promise: {check.text}; {describe(check)}."
    elif row.outcome in {Outcome.INCONCLUSIVE.value, ERROR}:
        reasons = [*row.reasons, *(check.text for check in row.checks if check.outcome is Outcome.INCONCLUSIVE)]
        yield _NOT_KNOWN, "note", f"{row.words}: nothing is known: {'; '.join(reasons)}."


def _rule(check: Check) -> str:
    return re.sub(r"[^a-z0-9]+", "-", check.text.lower()).strip("-")


def _result(row: Row, rule: str, level: str, text: str, file: str) -> dict[str, object]:
    return _of(row.key, [(row.kind, name) for name in row.targets], rule, level, text, file)


def _of(key: str, places: Sequence[tuple[str, str]], rule: str, level: str, text: str, file: str) -> dict[str, object]:
    """Return a result; ``key``: its identity among those of the rule; ``places``: kind and name of each part."""
    names = [{"name": name, "fullyQualifiedName": f"{kind}/{name}", "kind": "resource"} for kind, name in places]
    location: dict[str, object] = {"logicalLocations": names} if names else {}
    if PurePath(file).suffix in {".yaml", ".yml"}:
        place = {"artifactLocation": {"uri": quote(PurePath(file).as_posix())}, "region": {"startLine": 1}}
        location["physicalLocation"] = place
    digest = hashlib.sha256(f"{rule}\n{key}".encode()).hexdigest()
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": [location],
        "partialFingerprints": {_FINGERPRINT: digest},
    }
