*** Settings ***
Documentation    Paths without a policer: one that never loses a frame, and one that does by itself.

Resource         acceptance.resource

Suite Setup      Skip Without A Local Testbed
Test Teardown    Tear Down Testbed

Test Tags        own_limits


*** Variables ***
# Little evidence: what they find is far from where it should not be.
&{NO_LOSS}        name=no loss    loss_ratio=0    exceed_ratio=0.5    final_trial_duration=200 ms
...               duration_sum=600 ms    width=5 %
&{LITTLE_LOSS}    name=little loss    loss_ratio=0.5 %    exceed_ratio=0.5    final_trial_duration=200 ms
...               duration_sum=600 ms    width=5 %


*** Test Cases ***
A Bare Bridge Is As Fast As The Generator
    [Documentation]    A bridge between veths slows its sender down and loses nothing: what is found is no limit of it.
    Set Up Testbed    ${LOCAL}    dut=linux_bridge
    ${result}    Find Conditional Throughput    ${NO_LOSS}    frame_size=64B
    VAR    ${report}    ${result.goals}[0]
    Should Not Be True    ${report.result.regular}
    Should Match Regexp    ${report.result.reason}    ^the generator's (limit|maximum load)

A Router With Enough To Do Loses Frames By Itself
    [Documentation]    The frames that a loaded router loses are its own: nothing is blamed on the generator.
    Wait Until Keyword Succeeds    ${ATTEMPTS}    5 s    A Loaded Router Has A Limit Of Its Own

The Maximum Receive Rate Of A Policer Is What It Passes
    [Documentation]    Mean and every value: N + B/T.
    Wait Until Keyword Succeeds    ${ATTEMPTS}    5 s    MRR Of A Policer Is What It Passes


*** Keywords ***
MRR Of A Policer Is What It Passes
    [Documentation]    A stall wastes what a full bucket does not take, so a busy machine gets another attempt.
    Tear Down Testbed
    ${topology}    Making Up For Stalls
    Set Up Testbed    ${topology}    dut=linux_bridge    police=5 kfps    burst=1000
    ${result}    Measure MRR    64B    trials=3    max_load=10 kpps
    FOR    ${value}    IN    @{result.mrr.values}
        VAR    ${passed}    ${value.forwarding_rate.per_interface_fps}
        Should Be True    abs($passed - 6000) <= 6000 * 0.001    ${passed} fps
    END

A Loaded Router Has A Limit Of Its Own
    [Documentation]    One direction only, so that its thread has a CPU for itself.
    Tear Down Testbed
    ${topology}    Making Up For Stalls
    Set Up Testbed    ${topology}    dut=linux_router    rules=500
    ${result}    Find Conditional Throughput    ${LITTLE_LOSS}    frame_size=64B
    ...    bidirectional=False    min_load=1 kpps
    VAR    ${little}    ${result.goals}[0]
    Should Be Regular    ${little}
    Should Be True
    ...    $little.result.relevant_upper_bound.per_interface_fps < 0.9 * $result.max_load.rate.per_interface_fps
