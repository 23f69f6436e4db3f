from __future__ import annotations

from ipaddress import IPv4Network, collapse_addresses, ip_network

import pytest
from hypothesis import given, strategies as st

from lossratio.bpf import default_networks


@pytest.mark.parametrize(
    ("routes", "default"),
    [
        ("0.0.0.0/0 10.0.0.0/8", "0.0.0.0/0"),
        ("0.0.0.0/1 128.0.0.0/1", "0.0.0.0/1 128.0.0.0/1"),
        ("0.0.0.0/0 0.0.0.0/1 128.0.0.0/1", "0.0.0.0/0 0.0.0.0/1 128.0.0.0/1"),
        ("0.0.0.0/2 64.0.0.0/2 128.0.0.0/1 10.0.0.0/8", "0.0.0.0/2 64.0.0.0/2 128.0.0.0/1"),
        ("0.0.0.0/1 10.0.0.0/8", ""),
        ("0.0.0.0/1 128.0.0.0/1 0.0.0.0/2 64.0.0.0/2 128.0.0.0/2 192.0.0.0/2",) * 2,
        ("192.0.0.0/4 10.0.0.0/8", "192.0.0.0/4"),
        ("198.18.0.0/15 198.18.0.0/16 198.18.7.0/24", ""),
        ("::/0 fe80::/64", "::/0"),
        ("::/1 8000::/1 ff00::/8", "::/1 8000::/1"),
        ("2000::/3 fe80::/64", "2000::/3"),
        ("2001:2::/48 8000::/1", ""),
        ("0.0.0.0/1 8000::/1", ""),
        ("", ""),
    ],
)
def test_a_default_route_is_known_in_pieces_too(routes, default):
    networks = default_networks({ip_network(route) for route in routes.split()})
    assert networks == {ip_network(route) for route in default.split()}


def networks(kind: type[IPv4Network], bits: int) -> st.SearchStrategy:
    prefixes = st.integers(0, 6).flatmap(lambda length: st.tuples(st.integers(0, 2**length - 1), st.just(length)))
    return prefixes.map(lambda prefix: kind((prefix[0] << (bits - prefix[1]), prefix[1])))


@pytest.mark.whole
@given(st.integers(0, 3), st.integers(1, 3), st.sets(networks(IPv4Network, 32), max_size=6))
def test_the_other_routes_never_cover_all_addresses(shorter, more, others):
    everywhere = IPv4Network("0.0.0.0/0")
    whole = {*everywhere.subnets(shorter), *everywhere.subnets(shorter + more), *others}
    defaults = default_networks(whole)
    assert {*everywhere.subnets(shorter), *everywhere.subnets(shorter + more)} <= defaults
    assert list(collapse_addresses(whole - defaults)) != [everywhere]
