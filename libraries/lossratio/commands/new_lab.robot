*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] NAME: DEVICE.
...               [Ver] NDR and PDR by RFC 9971, MRR at maximum load. [Ref] RFC 2544.
Metadata          Frame Sizes    64B 1518B IMIX

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}    dut=KINDOPTIONS
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    ethip4    base    ethip4-ip4base-TAG    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-TAG-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-TAG-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
