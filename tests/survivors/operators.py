"""Mutation operators: mutmut's, and the common ones that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import libcst as cst
from mutmut.node_mutation import mutation_operators, operator_string


def _one_operand(node: cst.BooleanOperation | cst.BinaryOperation) -> Iterator[cst.CSTNode]:
    """Turn ``a and b``, or ``a - b``, into ``a`` and into ``b``."""
    yield from (node.left, node.right)


def _one_branch(node: cst.IfExp) -> Iterator[cst.CSTNode]:
    """Turn ``a if c else b`` into ``a`` and into ``b``."""
    yield from (node.body, node.orelse)


def _settled(test: cst.BaseExpression) -> Iterator[cst.CSTNode]:
    """Turn a condition into True, into False and into its opposite."""
    yield from (cst.Name("True"), cst.Name("False"))
    yield cst.UnaryOperation(cst.Not(), test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))


def _unfiltered(node: cst.CompFor) -> Iterator[cst.CSTNode]:
    """Drop one ``if`` of a comprehension."""
    for at in range(len(node.ifs)):
        yield node.with_changes(ifs=[*node.ifs[:at], *node.ifs[at + 1 :]])


def _one_less(node: cst.List | cst.Tuple | cst.Set | cst.Dict) -> Iterator[cst.CSTNode]:
    """Drop one element of a display, and the only one of a list."""
    for at in range(len(node.elements) if len(node.elements) > 1 or isinstance(node, cst.List) else 0):
        yield node.with_changes(elements=[*node.elements[:at], *node.elements[at + 1 :]])


def _unwrapped(node: cst.Call) -> Iterator[cst.CSTNode]:
    """Turn ``f(a, b)`` into ``a`` and into ``b``."""
    yield from (each.value for each in node.args if not each.star and not each.keyword)


def _returned(node: cst.Return) -> Iterator[cst.CSTNode]:
    """Return nothing, true or false."""
    if node.value:
        yield from (node.with_changes(value=cst.Name(name)) for name in ("None", "False", "True"))


def _whole(node: cst.Subscript) -> Iterator[cst.CSTNode]:
    """Turn ``a[1:]`` into ``a``."""
    yield node.value


_Kind = type[cst.CSTNode] | tuple[type[cst.CSTNode], ...]
_OPERATORS: list[tuple[_Kind, Callable[..., Iterable[cst.CSTNode]]]] = [
    *((kind, operator) for kind, operator in mutation_operators if operator is not operator_string),
    ((cst.BooleanOperation, cst.BinaryOperation), _one_operand),
    (cst.IfExp, _one_branch),
    (cst.CompFor, _unfiltered),
    ((cst.List, cst.Tuple, cst.Set, cst.Dict), _one_less),
    (cst.Call, _unwrapped),
    (cst.Return, _returned),
    (cst.Subscript, _whole),
]
"""What kind of node, and what may stand there instead. Texts stay: there are many, and golden files judge them."""


def changes_of(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """What may be changed at a node: the node itself or its condition, and what stands there then."""
    if isinstance(node, cst.If | cst.While | cst.IfExp):
        yield from ((node.test, new) for new in _settled(node.test))
    for kind, operator in _OPERATORS:
        if isinstance(node, kind):
            yield from ((node, new) for new in operator(node))
