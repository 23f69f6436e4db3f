*** Settings ***
Documentation    A policer of rate N and burst B passes N + (B-1)/T frames per second in trials of T seconds from
...              rest: the first and the last frame are a frame less than T apart.
...              The search must find that in the kernel's own policer, and in the simulator's.

Resource         acceptance.resource

Suite Setup      Skip Without A Local Testbed
Test Teardown    Tear Down Testbed
Test Template    Truth Is Found In The Kernel And In The Simulator

Test Tags        policer


*** Test Cases ***    RATE    BURST    DURATION
Burst Of 100 ms    10 kfps    1000    500 ms
Burst Of 500 ms In Short Trials    2 kfps    1000    500 ms
High Rate    60 kfps    12000    500 ms


*** Keywords ***
Truth Is Found In The Kernel And In The Simulator
    [Documentation]    Both results enclose the truth, and agree within the width of the goal.
    [Arguments]    ${rate}    ${burst}    ${duration}
    ${truth}    Policed Throughput    ${rate}    ${burst}    ${duration}
    ${topology}    Making Up For Stalls
    ${real}    Wait Until Keyword Succeeds    ${ATTEMPTS}    5 s
    ...    Truth Is Found    ${topology}    ${rate}    ${burst}    ${duration}    ${truth}
    ${simulated}    Truth Is Found    ${SIMULATED}    ${rate}    ${burst}    ${duration}    ${truth}
    VAR    ${ratio}    ${{$real.per_interface_fps / $simulated.per_interface_fps}}
    Should Be True    abs($ratio - 1) <= 0.01    The kernel's is ${ratio} times the simulator's.

Truth Is Found
    [Documentation]    Searches on one testbed, and returns the conditional throughput.
    [Arguments]    ${topology}    ${rate}    ${burst}    ${duration}    ${truth}
    Tear Down Testbed
    Set Up Testbed    ${topology}    dut=linux_bridge    police=${rate}    burst=${burst}
    ${report}    Find Zero Loss Throughput    ${duration}    max_load=${{$truth * 2}}
    # Two frames more or less in a trial.
    ${t}    Evaluate    lossratio.values.units.parse_duration($duration)    modules=lossratio.values.units
    Should Be Regular And Enclose    ${report}    ${truth}    ${{2 / $t / $truth}}
    RETURN    ${report.result.conditional_throughput}

Policed Throughput
    [Documentation]    N + (B-1)/T in frames per second.
    [Arguments]    ${rate}    ${burst}    ${duration}
    ${n}    Evaluate    lossratio.values.units.parse_frame_rate($rate)    modules=lossratio.values.units
    ${t}    Evaluate    lossratio.values.units.parse_duration($duration)    modules=lossratio.values.units
    RETURN    ${{$n + (int($burst) - 1) / $t}}
