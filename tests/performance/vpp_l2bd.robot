*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] VPP with a bridge domain that learns addresses. [Ver] NDR
...               and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=l2bd
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    l2bdmaclrn    base    l2bdbase    eth-l2bdbasemaclrn
...               ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2bdbasemaclrn-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2bdbasemaclrn-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2bdbasemaclrn-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
