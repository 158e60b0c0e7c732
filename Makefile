# The two commands of the README, each complete on a bare Debian 12 machine.
VENV := .venv
HPN := $(VENV)/bin/hpn

.PHONY: drill test check setup clean

drill: setup
	$(HPN) drill run link-down

test: setup
	$(VENV)/bin/pytest -n 2 --dist loadfile -m "not guest"

check: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

setup:
	@.ci/setup $(VENV)

clean:
	rm -rf $(VENV) *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
