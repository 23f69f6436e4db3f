"""VPP's features, each a class of its own: options, commands, and what VPP must show."""

from lossratio.dut.vpp.features.access_lists import AccessLists, AllowList, Classifier
from lossratio.dut.vpp.features.feature import (
    ROUTES_ADDED,
    Command,
    Feature,
    Needs,
    Ports,
    Shown,
    VppForwarding,
    VppPort,
    both_ports,
)
from lossratio.dut.vpp.features.nat import Det44, Nat, Sessions, Sfdp
from lossratio.dut.vpp.features.overlays import Bond, Geneve, Gtpu, Srv6, Srv6Proxy
from lossratio.dut.vpp.features.policer import Marker, Policer, policer_name
from lossratio.dut.vpp.features.process import Process
from lossratio.dut.vpp.features.scale import LearnedMacs, Routes, many_routes
from lossratio.dut.vpp.features.secure_tunnels import Ipsec, IpsecAsync, WireGuard
from lossratio.dut.vpp.features.tunnels import Vlan, Vxlan
