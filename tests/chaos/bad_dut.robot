*** Settings ***
Documentation     The measurement of a device that does something wrong to each fiftieth frame to the east.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    dut=black_box
Suite Teardown    Tear Down Testbed


*** Variables ***
${SIZE}    64B


*** Test Cases ***
Bad DUT
    [Documentation]    Trials whose number of frames to the east is a multiple of fifty.
    Measure MRR    ${SIZE}    max_load=2 kfps    trials=8    trial_duration=500 ms
