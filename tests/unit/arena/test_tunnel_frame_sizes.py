import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossratio.arena.baselines.frame_sizes import GRE, VXLAN, VXLAN_IPV6, Tunnel
from lossratio.errors import SearchError


@pytest.mark.parametrize(
    ("tunnel", "frame_size", "vlan_tags", "inner_size"),
    [
        (VXLAN, 114, 0, 64),
        (VXLAN, 118, 1, 64),
        (VXLAN_IPV6, 134, 0, 64),
        (GRE, 64, 0, 22),
        (Tunnel("a tunnel with a trailer", header=36, trailer=14), 114, 0, 46),
    ],
)
def test_inner_sizes_are_frame_sizes_less_what_is_around(tunnel, frame_size, vlan_tags, inner_size):
    assert tunnel.inner_size(frame_size, vlan_tags=vlan_tags) == inner_size


@given(st.sampled_from([VXLAN, VXLAN_IPV6, GRE]), st.integers(20, 9000), st.integers(0, 2))
def test_frame_size_and_inner_size_are_each_others_reverse(tunnel, inner_size, vlan_tags):
    frame_size = tunnel.frame_size(inner_size, vlan_tags=vlan_tags)
    assert tunnel.inner_size(frame_size, vlan_tags=vlan_tags) == inner_size


@pytest.mark.parametrize("tunnel", [VXLAN, GRE])
def test_a_frame_too_small_for_its_tunnel_is_refused(tunnel):
    with pytest.raises(SearchError, match="no room"):
        tunnel.inner_size(42)
