*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] FRRouting, whose BGP peer withdraws 20,000 routes under
...               traffic and announces them again. [Ver] Frames lost, and lost time, at the load of a strict search.
...               [Ref] RFC 9971.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=frr    routes=20000    reconfiguration=withdraw
Suite Teardown    Tear Down Testbed
Test Template     Measure Reconfiguration Loss

Test Tags    perftest
...          eth
...          ip4fwd
...          scale
...          ethip4-ip4scale20k-frr-withdraw
...          ${FRAME_SIZE}
...          ${CORES}c    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4scale20k-frr-withdraw-reconf
    [Tags]    reconf
    ${FRAME_SIZE}    profile=ethip4-ip4scale20k
