*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] DPDK l3fwd with a route each way. [Ver] NDR and PDR by
...               RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544.
Metadata          Differs From CSIT    frame size
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=l3fwd    cores=${CORES}
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    eth    ip4fwd    base    dpdk    ethip4-ip4base-l3fwd    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-l3fwd-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4dst253
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-l3fwd-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4dst253
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-l3fwd-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4dst253
