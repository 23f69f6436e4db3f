"""VPP's features, each in its own class: options, commands, and what VPP must show.

Another package adds one by an entry point of the group ``lossratio.vpp_feature``, whose object is a subclass of
`lossratio.dut.vpp.Feature`.
"""

from lossratio.errors import DutError
from lossratio.files import plugin_group

# Table: lossratio's own features.
FEATURES = plugin_group(
    "lossratio.vpp_feature",
    what="feature of VPP",
    error=DutError,
    base="lossratio.dut.vpp.Feature",
    room=__name__,
    own={
        "acl": "access_lists:AccessLists",
        "classify": "access_lists:Classifier",
        "allowlist": "access_lists:AllowList",
        "police": "policer:Policer",
        "mark": "policer:Marker",
        "vlan": "overlays:Vlan",
        "vxlan": "overlays:Vxlan",
        "macs": "scale:LearnedMacs",
        "routes": "scale:Routes",
        "ipsec": "secure_tunnels:Ipsec",
        "ipsec_async": "secure_tunnels:IpsecAsync",
        "wireguard": "secure_tunnels:WireGuard",
        "process": "process:Process",
        "container": "process:Container",
        "vm": "process:VirtualMachine",
        "det44": "nat:Det44",
        "nat": "nat:Nat",
        "sfdp": "nat:Sfdp",
        "srv6": "overlays:Srv6",
        "srv6_proxy": "overlays:Srv6Proxy",
        "geneve": "overlays:Geneve",
        "gtpu": "overlays:Gtpu",
        "bond": "overlays:Bond",
    },
)
"""All features; lossratio's own are in the order of their commands to VPP."""
