*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4; between the DUTs Dot1q-IPv4. [Cfg] Two VPPs, each with a bridge
...               domain of its link to the TG and of an interface for VLAN 100 on the link between the two. [Ver] NDR
...               and PDR by RFC 9971, MRR at maximum load, critical load by counts.
...               [Ref] RFC 2544, IEEE 802.1Q.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=l2bd    vlan=100    vlan_between=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    dot1q    l2bdmaclrn    base    dot1q-l2bdbasemaclrn    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-dot1q-l2bdbasemaclrn-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-dot1q-l2bdbasemaclrn-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-dot1q-l2bdbasemaclrn-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
