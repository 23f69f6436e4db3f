*** Settings ***
Documentation    Paths of several devices, and without any: real frames, and a policer as the truth.

Resource         acceptance.resource

Suite Setup      Skip Without A Local Testbed
Test Teardown    Tear Down Testbed

Test Tags        topologies


*** Variables ***
${THREE_NODES}    ${CURDIR}/../../topologies/local-3n.yaml
${TWO_LINKS}      ${CURDIR}/../../topologies/local-2links.yaml
# What a policer of 2 kfps with bursts of 500 frames passes in 0.5 s: the first and the last frame are a frame less than
# that apart.
&{POLICER}        police=2 kfps    burst=500
${TRUTH}          ${2998}


*** Test Cases ***
Two Bridges In A Row Pass What One Does
    [Documentation]    Both police to the same rate, so the second one finds nothing left to drop.
    Wait Until Keyword Succeeds    ${ATTEMPTS}    5 s    Two Policed Bridges Are As Fast As One

Two Routers In A Row Forward Both Versions Of IP
    [Documentation]    Each is the other's neighbour, and readdresses the frames.
    [Template]    Two Routers Lose Nothing At A Small Load
    4    ethip4-udp    64B
    6    ethip6-udp    128B

A Path May Leave DUTs Out
    [Documentation]    The cable from the generator to itself is a path through no DUT.
    Set Up Testbed    ${THREE_NODES}    duts=0
    ${result}    Measure MRR    64B    trials=1    trial_duration=200 ms    max_load=5 kpps
    Should Be Equal    ${result.conditions.testbed.path}    ${{('TG.port2', 'TG.port3')}}

Two Parallel Links Are Measured At Once
    [Documentation]    Each of the four directions has a policer of its own, and twice as much is offered to it.
    ${topology}    Making Up For Stalls    ${TWO_LINKS}
    Set Up Testbed    ${topology}    links=2    dut=linux_bridge    &{POLICER}
    ${result}    Measure MRR    64B    trials=1    trial_duration=500 ms    max_load=6 kpps
    Should Be Equal As Numbers    ${result.conditions.load.aggregate_factor}    4
    Length Should Be    ${result.trials[0].directions}    4
    FOR    ${direction}    IN    @{result.trials[0].directions}
        Should Be True    abs($direction.received_frames - 1500) < 30    ${direction}
    END

The Frame Loss Rate Of A Policer Is What It Drops
    [Documentation]    1 - (N + B/T) / load at each load, and nothing below N + B/T.
    Wait Until Keyword Succeeds    ${ATTEMPTS}    5 s    Frame Loss Rate Is What A Policer Drops


*** Keywords ***
Frame Loss Rate Is What A Policer Drops
    [Documentation]    To a frame of a direction.
    Tear Down Testbed
    ${topology}    Making Up For Stalls
    Set Up Testbed    ${topology}    dut=linux_bridge    &{POLICER}
    ${result}    Measure Frame Loss Rate    64B    max_load=6 kpps    trial_duration=500 ms
    Should Be True    $result.frame_loss.is_complete
    FOR    ${at_load}    IN    @{result.frame_loss.loads}
        # What could not be sent in time was not there to be dropped, and gave the policer time for as many others.
        VAR    ${offered}    ${{ $at_load.sent_frames }}
        VAR    ${dropped}    ${{ max(0, 1 - $TRUTH / $offered) }}
        VAR    ${tolerance}    ${{ (2.5 + $at_load.unsent_frames) / $offered }}
        Should Be True    abs($at_load.frame_loss_ratio - $dropped) < $tolerance    ${at_load} should be ${dropped}
    END

Two Policed Bridges Are As Fast As One
    [Documentation]    The truth of one is that of both.
    Tear Down Testbed
    ${topology}    Making Up For Stalls    ${THREE_NODES}
    Set Up Testbed    ${topology}    dut=linux_bridge    &{POLICER}
    ${report}    Find Zero Loss Throughput    500 ms    max_load=6 kpps
    # Two frames more or less in a trial.
    Should Be Regular And Enclose    ${report}    ${TRUTH}    ${{2 / 1499}}

Two Routers Lose Nothing At A Small Load
    [Documentation]    The journal has the loss of the trial.
    [Arguments]    ${version}    ${profile}    ${frame_size}
    Set Up Testbed    ${THREE_NODES}    dut=linux_router    ip_version=${version}
    ${result}    Measure MRR
    ...    ${frame_size}
    ...    profile=${profile}
    ...    trials=2
    ...    trial_duration=200 ms
    ...    max_load=5 kpps
    Should Be Equal As Integers    ${result.mrr.lost_frames}    0
    Tear Down Testbed
