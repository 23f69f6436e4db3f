*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP. [Cfg] Linux bridge, policed to 50 kfps each way with bursts of
...               20 ms. [Ver] Time from the end of an overload to the last lost frame. [Ref] RFC 2544, section 26.5.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=linux_bridge    police=50 kfps
Suite Teardown    Tear Down Testbed

Test Tags         perftest    eth    l2bdmacstat    base    eth-l2bdbase-overload    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2bdbase-overload-recovery
    [Documentation]    Measures the throughput first, because the overload is 110 % of it.
    [Tags]    recovery
    Find Conditional Throughput    NDR    frame_size=${FRAME_SIZE}
    Measure System Recovery    ${FRAME_SIZE}
