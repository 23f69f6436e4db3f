*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4. [Cfg] Two VPPs as cross-connects. The link between them is an
...               LACP bond. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC
...               2544, IEEE 802.1AX.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=l2xc    bond=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    l2xcbase    base    lbond    lbond_vpp    lbond_1l    lbond_mode_lacp
...               lbond_lb_l34    ${FRAME_SIZE}    ${CORES}c    eth-l2xcbase-1lbvpplacp    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-1lbvpplacp-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-1lbvpplacp-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-1lbvpplacp-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
