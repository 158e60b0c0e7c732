"""The one exception tree; each leaf is one exit code of the ``hpn`` command (DESIGN rule 8)."""

from __future__ import annotations

from collections.abc import Sequence


class HpnError(Exception):
    """Base of every error that hpn raises on purpose; the message is one line and suggests a remedy."""

    exit_code = 1


class InputError(HpnError):
    """A file, name or option is wrong (exit 2). ``problems`` holds every mistake, one line each.

    ``about`` lists for each problem the keys of a section of which one must change, the likeliest first; empty where
    that is obvious. A dot leads into a subsection, or to an item of a list.
    """

    exit_code = 2

    def __init__(self, problems: str | Sequence[str], about: Sequence[str] = ()) -> None:
        """Create an error from one or more problems; ``about``: the keys that all of them concern."""
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        self.about: tuple[tuple[str, ...], ...] = (tuple(about),) * len(self.problems)
        super().__init__("\n".join(self.problems))

    @classmethod
    def of_each(cls, found: Sequence[tuple[str, Sequence[str]]]) -> InputError:
        """Create an error of several problems, each with the keys that it concerns."""
        error = cls([problem for problem, _ in found])
        error.about = tuple(tuple(keys) for _, keys in found)
        return error


class MachineError(HpnError):
    """This machine cannot run the request (exit 3): a missing tool, permission or kernel feature."""

    exit_code = 3


class NoisyError(HpnError):
    """The host or the measurement was too noisy for a result (exit 4)."""

    exit_code = 4


def error_for(exit_code: object, text: str) -> HpnError:
    """Return the error that another hpn process reported by exit code and text; MachineError for an unknown code."""
    kinds = (HpnError, InputError, MachineError, NoisyError)
    return next((kind for kind in kinds if kind.exit_code == exit_code), MachineError)(text)


def exit_code_of(error: BaseException) -> int:
    """Return the exit code for reporting ``error`` to another process; foreign errors count as the machine's."""
    return error.exit_code if isinstance(error, HpnError) else MachineError.exit_code
