"""Finite fields, small ones, by tables: sums digit by digit, products by logarithms. Pure.

An element of the field with p^m elements is a number with m digits to the base p, the coefficients of a polynomial.
Products are those of polynomials, modulo one whose root generates all elements but zero (Lidl, Niederreiter, 1997).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product


def is_prime_power(number: int) -> bool:
    """Return True for a power of one prime, the prime itself included."""
    return number > 1 and _root(number)[1] > 0


def _root(number: int) -> tuple[int, int]:
    """Return p and m where ``number`` is p^m; m is 0 where it is none."""
    prime = next((each for each in range(2, number + 1) if number % each == 0), number)
    times, rest = 0, number
    while rest > 1 and rest % prime == 0:
        rest, times = rest // prime, times + 1
    return prime, times if rest == 1 else 0


class Field:
    """The field with ``size`` elements, 0 to ``size`` - 1."""

    def __init__(self, size: int) -> None:
        """Make its tables. ValueError if ``size`` is no power of a prime."""
        self.size = size
        self._prime, self._digits = _root(size)
        if size < 2 or not self._digits:
            raise ValueError(f"{size} is no power of a prime")
        self._powers = next(found for found in map(self._generated, self._polynomials()) if found)
        self._logarithm = {power: number for number, power in enumerate(self._powers)}

    def power(self, exponent: int) -> int:
        """Return a power of the primitive element."""
        return self._powers[exponent % (self.size - 1)]

    def plus(self, one: int, other: int) -> int:
        """Return the sum."""
        return self._joined((a + b) % self._prime for a, b in zip(self._of(one), self._of(other), strict=True))

    def minus(self, one: int, other: int) -> int:
        """Return the difference."""
        return self._joined((a - b) % self._prime for a, b in zip(self._of(one), self._of(other), strict=True))

    def times(self, one: int, other: int) -> int:
        """Return the product."""
        if not one or not other:
            return 0
        return self.power(self._logarithm[one] + self._logarithm[other])

    def _polynomials(self) -> Iterator[tuple[int, ...]]:
        """Yield what x^m may equal: its lower coefficients, the constant first."""
        return product(range(self._prime), repeat=self._digits)

    def _generated(self, instead: tuple[int, ...]) -> tuple[int, ...]:
        """Return the powers of x where x^m equals ``instead``; empty if they are not all elements but zero."""
        found, power = [1], self._next(1, instead)
        while power not in (0, 1) and len(found) < self.size:
            found.append(power)
            power = self._next(power, instead)
        return tuple(found) if power == 1 and len(found) == self.size - 1 else ()

    def _next(self, power: int, instead: tuple[int, ...]) -> int:
        """Return x times a power of it."""
        *lower, top = self._of(power)
        return self._joined((a + top * b) % self._prime for a, b in zip((0, *lower), instead, strict=True))

    def _of(self, element: int) -> list[int]:
        return [element // self._prime**place % self._prime for place in range(self._digits)]

    def _joined(self, digits: Iterable[int]) -> int:
        return sum(digit * self._prime**place for place, digit in enumerate(digits))
