*** Settings ***
Documentation    A real TRex in the local testbed, in software mode, finds what the kernel's policer passes: N + B/T
...              frames per second for rate N, burst B, and trials of T seconds from rest. Skipped without TREX_HOME.

Resource         acceptance.resource

Suite Setup      Skip Without TRex
Test Teardown    Tear Down Testbed

Test Tags        trex


*** Variables ***
${TREX}       ${CURDIR}/../../topologies/local-trex.yaml
# In software mode TRex sends the frames of its first milliseconds at once, so that they share the policer's rate of a
# shorter time: seven milliseconds of four seconds, or a bit more where it gets no realtime priority.
${BATCHES}    ${3e-3}


*** Test Cases ***
TRex Finds What A Policer Passes
    [Documentation]    The same keywords as with the embedded generator, and another topology file.
    Set Up Testbed    ${TREX}    dut=linux_bridge    police=10 kfps    burst=1000
    Wait Until Keyword Succeeds    ${ATTEMPTS}    1 s    Truth Is Found    ${10250}


*** Keywords ***
Skip Without TRex
    [Documentation]    Skips where no TRex is named, or no network namespaces can be had, and says why.
    VAR    ${home}    %{TREX_HOME=}
    Skip If    not $home    TREX_HOME does not name the directory of a TRex installation.
    Skip Without A Local Testbed

Truth Is Found
    [Documentation]    Searches for the largest load without loss.
    [Arguments]    ${truth}
    VAR    &{goal}    name=no loss in 4 s    loss_ratio=0    initial_trial_duration=4 s    final_trial_duration=4 s
    ...    exceed_ratio=0.75    duration_sum=4 s    width=0.5 %
    ${result}    Find Conditional Throughput    ${goal}    frame_size=64B
    VAR    ${report}    ${result.goals}[0]
    Should Be Regular And Enclose    ${report}    ${truth}    ${BATCHES}
