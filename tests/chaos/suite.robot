*** Settings ***
Documentation     The measurements that faults strike, on a bridge whose policer is the truth. Its bucket holds 100 ms
...               of traffic, so that the stalls of a busy machine cost no frames.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=10 kfps    burst=1000
Suite Teardown    Tear Down Testbed


*** Variables ***
${SIZE}    64B
&{GOAL}    name=no loss    loss_ratio=0    exceed_ratio=0.5    duration_sum=1 s
...        final_trial_duration=200 ms    width=1 %


*** Test Cases ***
Search
    [Documentation]    The number of its trials depends on their results.
    Find Conditional Throughput    ${GOAL}    frame_size=${SIZE}    max_load=40 kfps

MRR
    [Documentation]    25 trials that lose nothing.
    Measure MRR    ${SIZE}    max_load=8 kfps    trials=25    trial_duration=200 ms

Frame Loss
    [Documentation]    Trials above and below the throughput.
    Measure Frame Loss Rate    ${SIZE}    max_load=20 kfps    trial_duration=500 ms
