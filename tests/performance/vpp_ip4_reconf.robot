*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] VPP as an IPv4 router that is given 10,000 routes
...               under traffic. [Ver] Frames lost, and lost time, at the load of a strict search. [Ref] RFC 9971.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4
Suite Teardown    Tear Down Testbed
Test Template     Measure Reconfiguration Loss

Test Tags         perftest    eth    ip4fwd    base    vpp    ethip4-ip4base-add10k    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-add10k-reconf
    [Tags]    reconf
    ${FRAME_SIZE}    profile=ethip4-ip4base    entries=10000
