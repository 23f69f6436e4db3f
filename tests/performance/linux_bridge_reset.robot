*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP. [Cfg] Linux bridge that goes down and up under traffic. [Ver]
...               Time without forwarding, by time stamps and by frame loss. [Ref] RFC 6201.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=linux_bridge
Suite Teardown    Tear Down Testbed
Test Template     Measure Reset Time

Test Tags         perftest    eth    l2bdmacstat    base    eth-l2bdbase-restart    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2bdbase-restart-reset
    [Tags]    reset
    ${FRAME_SIZE}    throughput=10 kpps
