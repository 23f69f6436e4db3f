*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] Open vSwitch in user space with 10,000 OpenFlow rules each
...               way. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=ovs    cores=${CORES}    rules=10000
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    eth    ip4fwd    scale    ovs    ethip4-ip4scale20k-ovs    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4scale20k-ovs-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4scale20k
${FRAME_SIZE}-${CORES}c-ethip4-ip4scale20k-ovs-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4scale20k
${FRAME_SIZE}-${CORES}c-ethip4-ip4scale20k-ovs-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4scale20k
