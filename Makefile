# `make demo` and `make test` do all the set-up there is: virtual environment, Python packages, and (where they may)
# Debian packages. Nothing else on the machine is changed.

SUITES := tests/performance tests/acceptance
ROBOT_FILES := $(SUITES) tests/chaos resources

CHAOS := --minutes 10
MUTANTS :=
LAB :=
CHOSEN :=
FUZZ_SECONDS := 120

# Which tests run, and how they are spread over the processes: conftest.py.
PYTEST := .venv/bin/python -m pytest --numprocesses 4 --dist loadgroup --no-loadscope-reorder

# Images of containers often set it. Each of the hundreds of programs that tests start would compile the library anew.
export PYTHONDONTWRITEBYTECODE :=
# Each of those processes would wait with a thread on every core, for matrices that one core multiplies as fast.
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test tests whole compiled dry-run study chaos mutants lab lint lowest release-check release docs generated pictures environment packages clean

demo:
	@tools/virtual-environment
	@tools/system-packages sshd=openssh-server ip=iproute2 nft=nftables ethtool=ethtool || true
	@.venv/bin/lossratio demo

# The same every day; with CHOSEN=--commit=HASH, also the costly tests that calculate, and a third of those with real
# frames. Lint and installation of packages share the cores with what comes before the tests.
test:
	$(MAKE) --no-print-directory --jobs=3 lint tests

tests: compiled packages
	$(PYTEST) $(CHOSEN)

# Each night and before a release: all tests.
whole:
	$(MAKE) --no-print-directory --jobs=3 lint dry-run tests CHOSEN=--whole

# In a fresh clone each of the processes would compile all tests: one does so before, on the core that lint leaves free.
compiled: environment
	@test -d tests/unit/__pycache__ || .venv/bin/python -m pytest --collect-only -q >/dev/null || true

# The laboratory alone.
study: environment
	$(PYTEST) study/tests

chaos: environment packages
	.venv/bin/python tests/chaos/chaos.py $(CHAOS)
	.venv/bin/python -m pytest tests/unit/hostile_input/test_fuzzing.py --fuzz-seconds $(FUZZ_SECONDS)
	$(PYTEST) -m "(whole or smoke or hypothesis) and not netns" --whole --hypothesis-profile whole

# Small mistakes in a copy of the library: each must make a test fail.
mutants: environment packages
	.venv/bin/python tests/chaos/mutants.py $(MUTANTS)

# Virtual machines with PCI cards: what namespaces cannot show. The first run makes their images of Debian's packages.
lab: environment
	@tools/system-packages qemu-system-x86_64=qemu-system-x86 mmdebstrap=mmdebstrap genext2fs=genext2fs || true
	.venv/bin/python -m pytest $(or $(LAB),tests/virtual_lab)

lint: environment
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/robocop check $(ROBOT_FILES)
	.venv/bin/robocop format --check $(ROBOT_FILES)

dry-run: environment
	.venv/bin/robot --dryrun --output NONE --log NONE --report NONE --console quiet \
	    --prerunmodifier lossratio.keywords.Catalogue:local tests/performance

# With the lowest versions that are supported: give the lowest Python, too, as PYTHON=python3.10.
lowest:
	$(or $(PYTHON),python3) -m venv --clear build/lowest
	build/lowest/bin/python -m pip install --quiet --constraint tools/lowest-versions.txt .
	build/lowest/bin/lossratio run --topology simulated docs/pictures/search.robot -- --outputdir build/lowest/run

# Sdist and wheel, as they would be published, used as a stranger would use them.
release-check:
	@tools/release-check

# The release that version and changelog name, as a commit with a tag: make release REPOSITORY=OWNER/NAME (the first time)
release:
	@python3 tools/release.py $(REPOSITORY)

docs:
	@tools/virtual-environment docs
	.venv/bin/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs build/docs
	@echo "The documentation: build/docs/index.html"

# What is written from the code: schemas, stubs for editors, tables of options and kinds in the
# documentation, and the figures that records of benchmarks have.
generated: environment
	.venv/bin/python docs/schema/export.py
	.venv/bin/python docs/stub.py
	.venv/bin/python docs/options.py
	.venv/bin/python docs/kinds.py
	.venv/bin/python docs/figures.py

pictures: environment
	.venv/bin/robot --outputdir results/pictures docs/pictures
	.venv/bin/python docs/pictures/export.py results/pictures/lossratio.html docs/pictures
	.venv/bin/python docs/pictures/trend.py docs/pictures/trend.svg
	.venv/bin/python docs/pictures/house.py docs/pictures/house.svg
	.venv/bin/python docs/console.py --demo

environment:
	@tools/virtual-environment test trex

packages:
	@tools/system-packages sshd=openssh-server ip=iproute2 nft=nftables ethtool=ethtool
	@tools/system-packages dpdk-testpmd=dpdk-dev ovs-vswitchd=openvswitch-switch vtysh=frr clang=clang || true
	@tools/system-packages chromium=chromium prometheus=prometheus jq=jq cpio=cpio || true

clean:
	rm -rf .venv results build dist libraries/*.egg-info study/build study/libraries/*.egg-info otg/build otg/libraries/*.egg-info
