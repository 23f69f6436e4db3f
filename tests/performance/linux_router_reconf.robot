*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] Linux router that is given 10,000 routes under traffic.
...               [Ver] Frames lost, and lost time, at the load of a strict search. [Ref] RFC 9971.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=linux_router
Suite Teardown    Tear Down Testbed
Test Template     Measure Reconfiguration Loss

Test Tags         perftest    eth    ip4fwd    base    ethip4-ip4base-linux-add10k    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-linux-add10k-reconf
    [Tags]    reconf
    ${FRAME_SIZE}    profile=ethip4-ip4base    entries=10000
