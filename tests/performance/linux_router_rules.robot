*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP. [Cfg] Linux IPv4 router, one way, that checks every frame
...               against 300 rules in a thread on another CPU. [Ver] NDR and PDR by RFC 9971, MRR at maximum load,
...               critical load by counts. [Ref] RFC 2544.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=linux_router    rules=300
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    eth    ip4fwd    feature    ethip4-ip4base-linux300rules    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-linux300rules-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-udp    bidirectional=False
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-linux300rules-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-udp    bidirectional=False
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-linux300rules-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-udp    bidirectional=False
