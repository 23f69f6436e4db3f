*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP. [Cfg] Linux bridge, policed to 50 kfps each way with bursts of
...               20 ms: passes 51 kfps for 1 s. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by
...               counts. [Ref] RFC 2544.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=linux_bridge    police=${POLICE}
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    eth    l2bdmacstat    base    eth-l2bdbase    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
# The rate that the bridge passes each way. A lower rate suits a busy machine, whose generator sends less.
${POLICE}    50 kfps


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2bdbase-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-udp
${FRAME_SIZE}-${CORES}c-eth-l2bdbase-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-udp
${FRAME_SIZE}-${CORES}c-eth-l2bdbase-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-udp
