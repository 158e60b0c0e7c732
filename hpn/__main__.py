"""Entry point of ``python -m hpn``, the same as the ``hpn`` command."""

import sys

try:
    from hpn.cli import main
except ModuleNotFoundError as error:
    sys.stderr.write(f"hpn: the Python package {error.name} is missing; run make setup, or pip install hpn\n")
    sys.exit(3)

main()
