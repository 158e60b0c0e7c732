"""``python -m hpn`` is the ``hpn`` command."""

from cli import main

main()
