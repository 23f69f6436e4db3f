*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4; between the DUTs VXLAN over IPv4 or IPv6. [Cfg] Two grouts,
...               DPDK's graph router, each of which bridges or routes between its link to the TG and a VXLAN tunnel to
...               the other one. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC
...               2544, RFC 7348.
Metadata          Cores    1 2 4
Metadata          Variant ethip4vxlan-l2bd-grout    l2bdmaclrn
Metadata          Variant ethip6vxlan-l2bd-grout    l2bdmaclrn underlay=6
Metadata          Variant ethip4vxlan-ip4-grout    ip4fwd vxlan_between=routed
Metadata          Variant ethip6vxlan-ip4-grout    ip4fwd vxlan_between=routed underlay=6

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=grout    cores=${CORES}    vxlan_between=bridged
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    encap    vxlan    dpdk    ${VARIANT}    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
${VARIANT}    ethip4vxlan-l2bd-grout


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-${VARIANT}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-${VARIANT}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-${VARIANT}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
