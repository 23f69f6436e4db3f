*** Settings ***
Documentation    A real TRex in the local testbed, in software mode, finds what the kernel's policer passes: N + B/T
...              frames per second for rate N, burst B, and trials of T seconds from rest. Skipped without TREX_HOME.

Resource         acceptance.resource

Suite Setup      Skip Without TRex
Test Teardown    Tear Down Testbed

Test Tags        trex


*** Variables ***
${TREX}       ${CURDIR}/../../topologies/local-trex.yaml
# In software mode TRex sends batches of a millisecond, or a bit more where it gets no realtime priority, so that the
# policer's rate counts for less time.
${BATCHES}    ${1e-3}


*** Test Cases ***
TRex Finds What A Policer Passes
    [Documentation]    The same keywords as with the embedded generator, and another topology file.
    [Template]    Truth Is Found For
    64B
    1518B
    IMIX_v4_1
    64B    bidirectional=no
    78B    profile=ethip6-udp
    68B    profile=dot1q-ip4base

Two Links Have A Policer Each
    [Documentation]    One server sends on four ports, a pair of them for each link.
    ${topology}    With TRex On Two Links
    Set Up Testbed    ${topology}    dut=linux_bridge    police=10 kfps    burst=1000    links=2
    Wait Until Keyword Succeeds    ${ATTEMPTS}    1 s    Truth Is Found    ${10250}

An Early Verdict Is That Of The Full Trial
    [Documentation]    The search ends trials as soon as enough frames are lost, and finds the same.
    Set Up Testbed    ${TREX}    dut=linux_bridge    police=10 kfps    burst=1000
    Wait Until Keyword Succeeds    ${ATTEMPTS}    1 s    Truth Is Found    ${10250}    early_verdict=on

Latency Is Measured With The Search
    [Documentation]    At five shares of PDR, for each direction; and the DUT is asked about a trial at PDR.
    Set Up Testbed    ${TREX}    dut=linux_bridge    police=10 kfps    burst=1000
    ${result}    Find NDR And PDR    64B    goals=quick    latency=yes    telemetry=yes
    Should Be Equal    ${{[at.share_ratio for at in $result.latency]}}    ${{[1.0, 0.9, 0.5, 0.1, 0.0]}}
    FOR    ${direction}    IN    @{{[one for at in $result.latency for one in at.directions]}}
        Should Be True    $direction.error is None    ${direction.error}
        Should Be True    0 < $direction.least_us <= $direction.mean_us <= $direction.most_us
    END
    Length Should Be    ${result.telemetry}    1

A Soak Of A Minute Ends
    [Documentation]    Nothing of the server's state gets in its way.
    Set Up Testbed    ${TREX}    dut=linux_bridge    police=10 kfps    burst=1000
    ${result}    Find Critical Load    64B    timeout=60 s    max_load=20 kfps    target_loss_ratio=0.1 %
    Should Be True    $result.error is None    ${result.error}

Frames Are Lost In A Reconfiguration Or Not
    [Documentation]    Traffic flows without a given end, and is stopped.
    Set Up Testbed    ${TREX}    dut=linux_bridge
    ${result}    Measure Reconfiguration Loss    64B    max_load=20 kfps
    Should Be True    $result.error is None    ${result.error}

A Load That TRex Does Not Reach Is Named As Its Limit
    [Documentation]    Never as that of the device.
    ${topology}    With Another Limit    ${TREX}    1 Mfps
    Set Up Testbed    ${topology}    dut=linux_bridge
    VAR    &{goal}    name=half    loss_ratio=50 %    final_trial_duration=1 s    duration_sum=1 s    width=20 %
    TRY
        ${result}    Find Conditional Throughput    ${goal}    frame_size=64B    min_load=9001 pps
        Should Contain    ${result.goals}[0].result.reason    the generator's limit, not the SUT's
    EXCEPT    .*generator.*    type=regexp    AS    ${error}
        Log    ${error}
    END


*** Keywords ***
Skip Without TRex
    [Documentation]    Skips where no TRex is named, or no network namespaces can be had, and says why.
    VAR    ${home}    %{TREX_HOME=}
    Skip If    not $home    TREX_HOME does not name the directory of a TRex installation.
    Skip Without A Local Testbed

Truth Is Found For
    [Documentation]    Sets up a policer, and searches with these frames.
    [Arguments]    ${frame_size}    &{traffic}
    Set Up Testbed    ${TREX}    dut=linux_bridge    police=10 kfps    burst=1000
    Wait Until Keyword Succeeds    ${ATTEMPTS}    1 s    Truth Is Found    ${10250}    ${frame_size}    &{traffic}
    [Teardown]    Tear Down Testbed

With TRex On Two Links
    [Documentation]    Returns a copy of the local topology with two links, with TRex as its generator.
    ${text}    Get File    ${CURDIR}/../../topologies/local-2links.yaml
    VAR    ${copy}    ${OUTPUT_DIR}/trex-2links.yaml
    ${trex}    Evaluate
    ...    re.sub(r"generator: .*", "generator: {kind: trex, software: true, max_rate: 20 kfps}", $text)
    ...    modules=re
    Create File    ${copy}    ${trex}
    RETURN    ${copy}

With Another Limit
    [Documentation]    Returns a copy of a topology whose generator has another ``max_rate``.
    [Arguments]    ${topology}    ${limit}
    ${text}    Get File    ${topology}
    VAR    ${copy}    ${OUTPUT_DIR}/trex-limit.yaml
    Create File    ${copy}    ${text.replace("max_rate: 50 kfps", "max_rate: ${limit}")}
    RETURN    ${copy}

Truth Is Found
    [Documentation]    Searches for the largest load without loss.
    [Arguments]    ${truth}    ${frame_size}=64B    &{traffic}
    VAR    &{goal}    name=no loss in 4 s    loss_ratio=0    initial_trial_duration=4 s    final_trial_duration=4 s
    ...    exceed_ratio=0.75    duration_sum=4 s    width=0.5 %
    ${result}    Find Conditional Throughput    ${goal}    frame_size=${frame_size}    &{traffic}
    VAR    ${report}    ${result.goals}[0]
    Should Be Regular And Enclose    ${report}    ${truth}    ${BATCHES}
