*** Settings ***
Documentation     [Top] TG-DUT1-TG. [Enc] Dot1q-IPv4. [Cfg] grout, DPDK's graph router, from VLAN 100 in the west to
...               VLAN 200 in the east, with a route each way. [Ver] NDR and PDR by RFC 9971, MRR at maximum load,
...               critical load by counts. [Ref] RFC 2544, IEEE 802.1Q.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=1    nic=${NIC}
...                   dut=grout    cores=${CORES}    vlan=100    vlan_east=200
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    dot1q    ip4fwd    base    dpdk    dot1q-ip4base-grout    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-dot1q-ip4base-grout-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=dot1q-vlan100-vlan200
${FRAME_SIZE}-${CORES}c-dot1q-ip4base-grout-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=dot1q-vlan100-vlan200
${FRAME_SIZE}-${CORES}c-dot1q-ip4base-grout-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=dot1q-vlan100-vlan200
