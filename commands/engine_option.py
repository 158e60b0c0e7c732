"""Engine options of commands: their choices are read from the engines on use.

The reason is that a plug-in of ``--plugin`` is loaded after the commands are created.
"""

from __future__ import annotations

from collections.abc import Callable

import click
import click.shell_completion

from hpn.testbed.vm.engines import HOST, EngineSpec, words


class OneOf(click.ParamType[str]):
    """One of several words, which are determined when a value is read or the help is printed."""

    name = "choice"

    def __init__(self, words_: Callable[[], tuple[str, ...]]) -> None:
        """Create the type; ``words_`` returns the words."""
        self._words = words_

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Convert like ``click.Choice``."""
        return self._choice.convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return the metavar like ``click.Choice``."""
        return self._choice.get_metavar(param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Complete like ``click.Choice``."""
        return self._choice.shell_complete(ctx, param, incomplete)

    @property
    def words(self) -> tuple[str, ...]:
        """Accepted words."""
        return self._words()

    @property
    def _choice(self) -> click.Choice[str]:
        return click.Choice(self._words())


def engine_option(
    text: str, offered: Callable[[EngineSpec], bool] = lambda _spec: True, default: str = HOST.name
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return the option ``--engine`` with the engines that are ``offered``; the default is this kernel."""
    return click.option("--engine", type=OneOf(lambda: words(offered)), default=default, show_default=True, help=text)


VIRTUAL_TIME = words(lambda spec: spec.virtual_time)[0]
"""Default of commands whose answers must repeat."""

virtual_time_option = click.option("--virtual-time", is_flag=True, hidden=True)
"""Former spelling: ``--engine uml --virtual-time`` is ``--engine uml-virtual-time``."""
scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on the workers of this dask scheduler: tcp://HOST:8786, tls://..., or its scheduler file (.json).",
)
