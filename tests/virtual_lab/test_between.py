"""`lossratio between` of two machines, from nothing but their names: the second one is behind a router with a policer.

The router is a namespace of the second machine, with its card. Both machines have the same address on the network that
they are logged in by.
"""

from __future__ import annotations

import pytest

from lossratio.results import RunDirectory

FPS, BURST = 400, 200
"""What the router passes in each direction."""
CLIENT, ROUTER, BEHIND, SERVER = "198.18.0.2", "198.18.0.1", "198.18.1.1", "198.18.1.2"
ROUTED = f"""set -e
ip netns add router
ip link set dev {{card}} netns router
ip link add server type veth peer name behind netns router
ip netns exec router sysctl -qw net.ipv4.ip_forward=1
ip -n router address add {ROUTER}/24 dev {{card}}
ip -n router address add {BEHIND}/24 dev behind
ip -n router link set {{card}} up
ip -n router link set behind up
ip address add {SERVER}/24 dev server
ip link set server up
ip route add 198.18.0.0/24 via {BEHIND}
ip netns exec router nft -f - <<END
table ip police {{{{
  chain forward {{{{
    type filter hook forward priority 0
    iifname {{card}} limit rate over {FPS}/second burst {BURST} packets drop
    iifname behind limit rate over {FPS}/second burst {BURST} packets drop
  }}}}
}}}}
END
"""


@pytest.fixture(scope="module")
def ends(lab):
    """Client and server as a user types them, and what logs in there."""
    client, server = lab["TG"], lab["DUT1"]
    near, far = client.interface(0), server.interface(0)
    server.shell(ROUTED.format(card=far))
    client.shell(
        f"ip address add {CLIENT}/24 dev {near}; ip link set {near} up; ip route add 198.18.1.0/24 via {ROUTER}"
    )
    yield (
        f"root@127.0.0.1:{client.port}",
        f"root@127.0.0.1:{server.port}",
        *("--key-file", lab.directory / "user.key"),
        *("--known-hosts", lab.directory / "known_hosts"),
    )
    client.shell(f"ip address flush dev {near}")
    server.shell("ip netns del router; ip link del server", check=False)


def test_a_policer_between_two_machines_is_found_from_their_names(ends, lossratio, tmp_path):
    patience = ("--catch-up", "300 ms", "--hold", "2 s")
    said = lossratio("between", *ends, "--max-load", "2 kfps", *patience, "--latency", "--output", "out")
    assert f"{CLIENT}/24, next hop {ROUTER}" in said
    assert f"{SERVER}/24, next hop {BEHIND}" in said
    # Debian's minimal system has no chrony, so nothing says how far the clocks are apart.
    assert "chrony is not installed" in said
    result, _ = RunDirectory(tmp_path / "out").results()
    ndr = result.goals[0]
    # A machine that stands still leaves frames unsent or lets less through, and none lets more through.
    truth = FPS + BURST / ndr.goal.final_trial_duration_s
    assert ndr.result.relevant_lower_bound.per_interface_fps <= truth * 1.02


def test_the_network_that_one_logs_in_by_is_no_path(ends, lossratio):
    assert "10.0.2.15 is an address of 127.0.0.1-" in lossratio("between", *ends, "--to", "10.0.2.15", status=2)


def test_the_file_that_is_saved_is_in_order(ends, lossratio):
    lossratio("between", *ends, "--save", "lab.yaml")
    lossratio("check", "lab.yaml", "--connect")
