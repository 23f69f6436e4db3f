*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] Linux IPv4 router with 120,000 routes to single hosts, all
...               of them used. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref]
...               RFC 2544.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=linux_router    routes=120000
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    eth    ip4fwd    scale    ethip4-ip4scale120k-linux    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4scale120k-linux-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4scale120k
${FRAME_SIZE}-${CORES}c-ethip4-ip4scale120k-linux-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4scale120k
${FRAME_SIZE}-${CORES}c-ethip4-ip4scale120k-linux-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4scale120k
