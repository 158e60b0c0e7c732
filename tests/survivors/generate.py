"""Mutants of a file, made by operators rather than by hand."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider

from tests.survivors.operators import changes_of

_LEFT_OUT = (cst.Annotation, cst.Decorator, cst.Param)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function."""

    file: str
    function: str
    line: int
    text: str  # of the whole file
    diff: str


def mutants(file: str, code: str) -> Iterator[Mutant]:
    """Every mutant of the functions in ``code``.

    mutmut itself leaves out methods of decorated classes, for its trampolines' sake; most of ours are dataclasses.
    """
    wrapper = cst.MetadataWrapper(cst.parse_module(code))
    spans, written = wrapper.resolve(ByteSpanPositionProvider), code.encode()
    for old, new, function in _changes(wrapper.module, ""):
        start, end = spans[old].start, spans[old].start + spans[old].length
        planted = wrapper.module.code_for_node(new).encode()
        text = (written[:start] + planted + written[end:]).decode()
        if text != code and _compiles(text):
            yield Mutant(file, function, written[:start].count(b"\n") + 1, text, _diff(code, text))


def _changes(node: cst.CSTNode, name: str, inside: bool = False) -> Iterator[tuple[cst.CSTNode, cst.CSTNode, str]]:
    if isinstance(node, _LEFT_OUT):
        return
    if inside:
        yield from ((old, new, name) for old, new in changes_of(node))
    elif isinstance(node, cst.FunctionDef | cst.ClassDef):
        name = f"{name}.{node.name.value}".removeprefix(".")
        inside = isinstance(node, cst.FunctionDef)
    for child in node.children:
        yield from _changes(child, name, inside)


def _diff(code: str, text: str) -> str:
    lines = list(difflib.unified_diff(code.splitlines(), text.splitlines(), lineterm="", n=0))
    return "\n".join(line for line in lines[2:] if not line.startswith("@@"))


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True
