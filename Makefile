# `make demo` and `make test` do all the set-up there is: virtual environment, Python packages, and (where they may)
# Debian packages. Nothing else on the machine is changed.

SUITES := tests/performance tests/acceptance
ROBOT_FILES := $(SUITES) tests/chaos resources

CHAOS := --minutes 10

.PHONY: demo test chaos lint docs pictures environment packages clean

demo:
	@tools/virtual-environment
	@-tools/system-packages sshd=openssh-server ip=iproute2 nft=nftables ethtool=ethtool
	@tools/demo

test: environment packages lint
	.venv/bin/robot --outputdir results/acceptance --consolewidth 110 tests/acceptance
	.venv/bin/python -m pytest --numprocesses auto --dist loadgroup

chaos: environment packages
	.venv/bin/python tests/chaos/chaos.py $(CHAOS)

lint: environment
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/robocop check $(ROBOT_FILES)
	.venv/bin/robocop format --check $(ROBOT_FILES)
	for topology in topologies/*.yaml topologies/examples/*.yaml; do .venv/bin/robot --dryrun --output NONE --log NONE --report NONE --console quiet \
	    --prerunmodifier "lossratio.keywords.Catalogue:$$topology" tests/performance || exit; done

docs:
	@tools/virtual-environment docs
	.venv/bin/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs build/docs
	@echo "The documentation: build/docs/index.html"

pictures: environment
	.venv/bin/robot --outputdir results/pictures docs/pictures/search.robot
	.venv/bin/python docs/pictures/export.py results/pictures/lossratio.html docs/pictures/search.svg

environment:
	@tools/virtual-environment test trex

packages:
	@tools/system-packages sshd=openssh-server ip=iproute2 nft=nftables ethtool=ethtool
	@-tools/system-packages dpdk-testpmd=dpdk-dev ovs-vswitchd=openvswitch-switch

clean:
	rm -rf .venv results build dist libraries/*.egg-info
