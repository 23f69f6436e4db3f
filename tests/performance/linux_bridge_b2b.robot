*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP. [Cfg] Linux bridge, policed to 50 kfps each way with bursts of
...               1000 frames. [Ver] Longest burst without loss, and buffer time. [Ref] RFC 9004.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=linux_bridge    police=50 kfps    burst=1000
Suite Teardown    Tear Down Testbed

Test Tags         perftest    eth    l2bdmacstat    base    eth-l2bdbase-burst1k    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2bdbase-burst1k-b2b
    [Documentation]    Measures the throughput first, because the corrected buffer time needs it.
    [Tags]    b2b
    Find Conditional Throughput    NDR    frame_size=${FRAME_SIZE}
    Measure Back-To-Back Frames    ${FRAME_SIZE}
