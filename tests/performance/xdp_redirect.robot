*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] XDP programs that redirect all frames.
...               [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=xdp
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    eth    l2xcfwd    base    xdp    eth-l2xcbase-xdp    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-xdp-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-xdp-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-xdp-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
