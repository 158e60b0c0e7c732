# The two commands of the README, 'drill' and 'test', each complete on a bare Debian 12 machine; and what developers use.
VENV := .venv
HPN := $(VENV)/bin/hpn

# Whole files to workers, in the order of collection: tests/conftest.py puts guests that take longest first, extras last.
# Guests use their CPU; other tests mostly wait for timers of protocols, so that twice as many run beside each other.
PYTEST := $(VENV)/bin/pytest --dist loadfile --no-loadscope-reorder -rfs
GUESTS := -n 3
OTHERS := -n 6

.PHONY: drill test quick slow check chaos pool-trial kernel phases strangers misconfigurations frr client-table profile-table location-table network-table growth costs setup slurm-trial guests calibration extras clients judges mutants survivors planted screenshots pictures claim-pictures site tutorial dist image clean

# make ends with 2 whatever a recipe's exit code is: what gates on the answer calls .ci/drill, which ends with the drill's.
drill:
	@.ci/drill $(VENV)

test: guests
	$(VENV)/bin/pytest -rfs -m alone
	$(PYTEST) $(OTHERS) -m "not guest and not alone"
	$(PYTEST) $(GUESTS) -m "guest and not slow and not alone"

quick: setup
	$(PYTEST) $(OTHERS) -m "not guest and not alone"

# Guests that take a minute each and whose rules quicker tests hold too (some ten minutes); before a release.
slow: kernel
	$(PYTEST) $(GUESTS) -m slow

check: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# 100 SIGKILLs and 50 Ctrl-C at random moments of hpn up and hpn drill run (some 15 minutes); another SEED, other moments.
SEED := 1
chaos: setup
	$(VENV)/bin/python -m tests.product.chaos $(SEED) 100 50

# Three dask workers killed at random while they make real runs in virtual time (some ten minutes); another SEED, other moments.
RUNS := 12
KILLS := 8
pool-trial: kernel
	$(VENV)/bin/python -m tests.scenarios.pool.trial runs/pool-trial-$$(date +%Y%m%d-%H%M%S) --seed $(SEED) --runs $(RUNS) --kills $(KILLS)

# The examples for Slurm under a Slurm of one node, with workers cancelled and requeued in mid-run (some ten minutes). Needs:
# apt-get install --no-install-recommends slurm-wlm munge
slurm-trial: kernel extras
	$(VENV)/bin/python -m tests.scenarios.pool.slurm_trial runs/slurm-trial-$$(date +%Y%m%d-%H%M%S)

# For virtual time; minutes the first time, then a second.
kernel: guests
	$(HPN) vm build-kernel

# Programs nobody here wrote (Soft-RoCE, iperf3, PyTorch's gloo, MPICH) against ours, in virtual time. Each is skipped where
# its program is missing.
judges: kernel clients
	$(PYTEST) $(GUESTS) tests/judges tests/product/test_ready_clients_guest.py tests/product/test_rxe_guest.py

setup:
	@.ci/setup $(VENV)

# Every drill at ten phases of the protocols' timers, in virtual time; hours. One run per core, or: make phases JOBS=1
JOBS :=
phases: kernel
	$(HPN) ci run examples/ci/phases.yaml --out runs/phases $(if $(JOBS),--jobs $(JOBS))

# Plants each defect of tests/mutants in a copy and sees its tests fail (some minutes); make mutants KIND=pure, or ONLY=verdict-
KIND :=
ONLY :=
mutants: setup
	$(VENV)/bin/python -m tests.mutants $(if $(KIND),--kind $(KIND)) $(ONLY)

# Mutants made by operators (mutmut's and ours) that no pure test catches, listed in runs/survivors.txt: LIMIT of them, drawn by
# SEED, or all with LIMIT=0. Can be resumed. make survivors ROOM=results/judge TESTS="tests/results tests/scenarios"
ROOM :=
TESTS := tests
LIMIT := 200
survivors: setup
	@$(VENV)/bin/python -c "import libcst, mutmut" 2>/dev/null || \
	  $(VENV)/bin/pip install -qq --disable-pip-version-check --no-deps -r tests/survivors/requirements.lock
	nice $(VENV)/bin/python -m tests.survivors $(ROOM) --tests $(TESTS) --limit $(LIMIT) --seed $(SEED)

# Random drills on random fabrics in virtual time, held against an oracle that shares no code with hpn (an hour); seeds that
# OUT has stay: make strangers N=40, or ONLY=7,12. Exit 1: a queue pair died that had a path, a limit broke and nobody knows why.
N := 200
FIRST := 0
OUT := runs/strangers
strangers: kernel
	$(VENV)/bin/python -m tests.strangers --number $(N) --first $(FIRST) --out $(OUT) --jobs $(or $(JOBS),2) $(if $(ONLY),--only $(ONLY))

# Mistakes planted in drawn networks of FRR and BIRD configurations, and 50 correct variants: where hpn names each, and what it
# costs (20 minutes). Writes runs/misconfigurations/table.md, and exits 1 when anything is named elsewhere, or blamed wrongly; what is
# there stays: make misconfigurations ONLY=maximum-paths-1,variants
misconfigurations: kernel
	$(VENV)/bin/python -m tests.misconfigured runs/misconfigurations --seed $(SEED) $(if $(ONLY),--only $(ONLY))

# Every drill with FRR in every switch in the place of BIRD, in virtual time (half an hour). Those that count on a
# withdrawal below 100 ms fail, two do not start (docs/architectures.md).
frr: kernel
	$(VENV)/bin/python -m tests.product.frr_library runs/frr-drills
	$(HPN) ci run runs/frr-drills/suite.yaml --out runs/frr $(if $(JOBS),--jobs $(JOBS))

# What faults cost our own model of a job, gloo and Soft-RoCE, over lossy and lossless networks too (docs/client-table.md); an
# hour, and can be resumed: runs that runs/client-table has are kept.
client-table: kernel clients
	$(VENV)/bin/python -m tests.product.client_table runs/client-table docs/client-table.md $(if $(JOBS),--jobs $(JOBS))

# What faults cost hosts of the lab's profile and of production's (docs/profile-table.md); half an hour, and can be resumed.
profile-table: kernel
	$(VENV)/bin/python -m tests.product.profile_table runs/profile-table docs/profile-table.md $(if $(JOBS),--jobs $(JOBS))

# What the same faults cost on each network, and what published networks take (docs/network-table.md); half an hour.
network-table: kernel
	$(VENV)/bin/python -m tests.product.network_table runs/network-table docs/network-table.md $(if $(JOBS),--jobs $(JOBS))

# Which faults end hosts locate, by which method (docs/location-table.md, its pictures); many hours, can be resumed.
location-table: kernel
	$(VENV)/bin/python -m tests.product.location_table runs/location-table docs/location-table.md $(if $(JOBS),--jobs $(JOBS))

# Defects planted in a copy: runs that hpn explore needs to find each, and random campaigns (hours with CAMPAIGNS=20). Writes
# runs/planted/table.md; make planted ONLY=arp-no-retry CAMPAIGNS=3
CAMPAIGNS := 20
planted: kernel
	$(VENV)/bin/python -m tests.scenarios.explore.planted runs/planted --campaigns $(CAMPAIGNS) $(if $(ONLY),--only $(ONLY))

# What labs of six sizes cost on this machine, up to a whole segment (docs/growth.md); as root, for it raises the neighbour
# table's limit meanwhile. Sizes that runs/growth.json has are kept; where the time goes: make growth PROFILE=--profile
PROFILE :=
growth: setup
	$(VENV)/bin/python -m tests.product.growth runs/growth.json docs/pictures/growth.svg $(PROFILE)

# Where the CPU of a drill in virtual time goes (perf; one minute).
costs: kernel
	$(VENV)/bin/python -m tests.product.costs docs/costs.md

# What the tests in a browser saw, into runs/screenshots.
screenshots: extras
	HPN_SCREENSHOTS=$(CURDIR)/runs/screenshots $(PYTEST) $(GUESTS) tests/browser
	@echo "screenshots and a printed page: $(CURDIR)/runs/screenshots"

# The pictures in README and docs, from runs made now in virtual time (four minutes).
pictures: kernel extras
	$(VENV)/bin/python -m tests.docs.pictures docs/pictures

# The pictures of docs/reproduction.md, from what hpn reproduce has found; a claim that it did not judge keeps its picture.
claim-pictures: setup
	$(VENV)/bin/python -m tests.docs.claim_pictures runs/reproduce/reproduction.json docs/pictures

# The documentation as a site, build/site/html/index.html; a dead link is an error. What it needs is installed the first time.
site: setup
	@$(VENV)/bin/python -c "import furo, myst_parser, sphinx" 2>/dev/null || \
	  $(VENV)/bin/pip install -qq --disable-pip-version-check -r docs/site/requirements.lock
	@$(VENV)/bin/python -m docs.site build/site

# docs/tutorial.md followed word for word in a throw-away clone of what is committed: exit codes, and the outputs it quotes.
# A quarter of an hour, less where the kernel of virtual time is built already.
tutorial: setup
	$(VENV)/bin/python -m tests.docs.tutorial docs/tutorial.md

# The flow-level model against the lab: eleven topologies, three faults, in virtual time (270 runs); its summary in docs/model.md and the times
# that it draws from. Can be resumed: runs that runs/calibration has are kept.
calibration: kernel
	$(VENV)/bin/python -m tests.product.model_calibration runs/calibration docs/model.md

guests: setup
	@.ci/setup-guests $(VENV)

# A browser and other programs that some tests need; those tests are skipped where they are missing. clients: PyTorch, MPI.
extras: setup
	@.ci/setup-extras $(VENV) .ci/extras.txt

clients: setup
	@.ci/setup-extras $(VENV) .ci/extras.txt .ci/clients.txt

# The source distribution and the wheel of what is committed, in dist/ (CONTRIBUTING.md, Release).
dist: setup
	$(VENV)/bin/pip install -qq --disable-pip-version-check build==1.6.1
	rm -rf dist build/source && mkdir -p build/source && git archive HEAD | tar -x -C build/source
	$(VENV)/bin/python -m build --outdir dist build/source

# A container image of this checkout, hpn: labs, guests and the kernel of virtual time (some ten minutes, 3 GB).
image:
	@tool=$$(command -v docker || command -v podman || command -v buildah) || { echo "make image needs docker, podman or buildah" >&2; exit 3; }; \
	  $$tool build -t hpn .

clean:
	rm -rf $(VENV) *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
