*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] XDP filter whose table gets 10,000 addresses under
...               traffic. [Ver] Frames lost, and lost time, at the load of a strict search. [Ref] RFC 9971.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=xdp    forwarding=filter
Suite Teardown    Tear Down Testbed
Test Template     Measure Reconfiguration Loss

Test Tags         perftest    eth    l2xcfwd    feature    xdp    eth-l2xcbase-xdp-add10k    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-xdp-add10k-reconf
    [Tags]    reconf
    ${FRAME_SIZE}    profile=ethip4-ip4base    entries=10000
