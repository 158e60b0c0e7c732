"""The options that say on which engine a command runs: what they take is read from the engines when they are used.

A plug-in that ``--plugin`` names is loaded after the commands are made.
"""

from __future__ import annotations

from collections.abc import Callable

import click
import click.shell_completion

from hpn.testbed.vm.engines import HOST, EngineSpec, words


class OneOf(click.ParamType[str]):
    """One of some words, which are asked for when a value is read or the help is printed."""

    name = "choice"

    def __init__(self, words_: Callable[[], tuple[str, ...]]) -> None:
        """``words_`` gives them."""
        self._words = words_

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As ``click.Choice`` does."""
        return self._choice.convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """As ``click.Choice`` does."""
        return self._choice.get_metavar(param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """As ``click.Choice`` does."""
        return self._choice.shell_complete(ctx, param, incomplete)

    @property
    def words(self) -> tuple[str, ...]:
        """Those that it takes."""
        return self._words()

    @property
    def _choice(self) -> click.Choice[str]:
        return click.Choice(self._words())


def engine_option(
    text: str, offered: Callable[[EngineSpec], bool] = lambda _spec: True
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """``--engine`` with the engines that are ``offered``, this kernel when it is not given."""
    return click.option("--engine", type=OneOf(lambda: words(offered)), default=HOST.name, show_default=True, help=text)


virtual_time_option = click.option("--virtual-time", is_flag=True, hidden=True)
"""The old spelling: ``--engine uml --virtual-time`` is ``--engine uml-virtual-time``."""
scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on the workers of this dask scheduler: tcp://HOST:8786, tls://..., or its scheduler file (.json).",
)
