"""The one exception tree; each leaf is one exit code of the ``hpn`` command (DESIGN rule 8)."""

from __future__ import annotations

from collections.abc import Sequence


class HpnError(Exception):
    """Base of every error the product raises on purpose; the message is one line and names the way out."""

    exit_code = 1


class InputError(HpnError):
    """A file, name or option is wrong (exit 2). ``problems`` holds every mistake found, one line each.

    ``about`` is, for each of them, the keys of a section of which one has to change, the likeliest first; empty where
    that goes without saying. A dot leads into a section of it, or to an item of a list.
    """

    exit_code = 2

    def __init__(self, problems: str | Sequence[str], about: Sequence[str] = ()) -> None:
        """``about``: the keys that all of the problems are about."""
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        self.about: tuple[tuple[str, ...], ...] = (tuple(about),) * len(self.problems)
        super().__init__("\n".join(self.problems))

    @classmethod
    def of_each(cls, found: Sequence[tuple[str, Sequence[str]]]) -> InputError:
        """Several problems, each with the keys that it is about."""
        error = cls([problem for problem, _ in found])
        error.about = tuple(tuple(keys) for _, keys in found)
        return error


class MachineError(HpnError):
    """This machine cannot run what was asked (exit 3): a missing tool, permission or kernel feature."""

    exit_code = 3


class NoisyError(HpnError):
    """The host or the measurement was too noisy to say anything (exit 4)."""

    exit_code = 4


def error_for(exit_code: object, text: str) -> HpnError:
    """The error that another process of ours reported by exit code and text; a code unknown here is a MachineError."""
    kinds = (HpnError, InputError, MachineError, NoisyError)
    return next((kind for kind in kinds if kind.exit_code == exit_code), MachineError)(text)


def exit_code_of(error: BaseException) -> int:
    """The exit code to report ``error`` to another process with; what is not ours is the machine's."""
    return error.exit_code if isinstance(error, HpnError) else MachineError.exit_code
