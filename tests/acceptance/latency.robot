*** Settings ***
Documentation     Latency of real frames, after a search and by itself; and traffic apart from trials.

Resource          acceptance.resource

Suite Setup       Set Up A Policer
Suite Teardown    Tear Down Testbed

Test Tags         latency


*** Test Cases ***
After A Search It Is Measured Below What Was Found
    [Documentation]    At shares of the relevant lower bound and at the minimum load, where nothing is lost.
    VAR    &{goal}    name=NDR    loss_ratio=0    final_trial_duration=0.5 s    duration_sum=1 s    width=5 %
    Find Conditional Throughput    ${goal}    frame_size=64B    min_load=1 kpps    max_load=40 kpps
    ${result}    Measure Latency    duration=0.5 s
    Should Be Equal    ${{[at_load.share_ratio for at_load in $result.latency]}}    ${{[1.0, 0.9, 0.5, 0.1, 0.0]}}
    FOR    ${latency}    IN    @{result.latency}
        Latency Should Be Plausible    ${latency}
    END
    Should Be Equal As Numbers    ${{$result.latency[4].load.per_interface_fps}}    1000

By Itself It Is Measured At Given Loads
    [Documentation]    Of every size of a mix.
    ${result}    Measure Latency    5 kpps    1 kpps    frame_size=IMIX_v4_1    duration=0.5 s
    Should Be Equal    ${result.kind}    latency
    Length Should Be    ${result.latency}    2
    FOR    ${latency}    IN    @{result.latency}
        Latency Should Be Plausible    ${latency}
    END

Where Frames Are Lost Those That Come Back Have A Latency
    [Documentation]    A policer passes half of twice its rate, and its burst; some of the frames that measure, too.
    ${result}    Measure Latency    40 kpps    frame_size=64B    duration=1 s
    VAR    ${latency}    ${result.latency}[0]
    Should Be True    abs($latency.loss_ratio - 0.4) < 0.02    ${latency.loss_ratio}
    FOR    ${direction}    IN    @{latency.directions}
        Should Be True    0 < $direction.received_frames <= $direction.sent_frames
        Should Be True    $direction.error is None    ${direction.error}
    END

Traffic Flows Until It Is Stopped
    [Documentation]    A policer passes its rate for as long as traffic flowed, and its burst. A stall in the end wastes
    ...    some of it, so a busy machine gets another attempt.
    Wait Until Keyword Succeeds    ${ATTEMPTS}    1 s    What Flowed Is What A Policer Passes

No Traffic Can Be Stopped That Does Not Flow
    [Documentation]    The error says what to call first.
    Run Keyword And Expect Error    *Call the keyword 'Start Traffic' first.    Stop Traffic


*** Keywords ***
Set Up A Policer
    [Documentation]    20 kfps in the long run, and 4,000 frames at once.
    Skip Without A Local Testbed
    ${topology}    Making Up For Stalls
    Set Up Testbed    ${topology}    dut=linux_bridge    police=20 kfps    burst=4000

What Flowed Is What A Policer Passes
    [Documentation]    One attempt.
    Start Traffic    40 kpps    frame_size=64B
    Run Keyword And Expect Error    *Stop it before the next measurement*    Measure MRR    64B
    # Until the bucket is empty.
    Sleep    500 ms
    ${traffic}    Stop Traffic
    FOR    ${direction}    IN    @{traffic.directions}
        VAR    ${passed}    ${{20_000 * $direction.elapsed + 4000}}
        Should Be True    abs($direction.received - $passed) < 0.01 * $passed    ${direction}
    END
    Should Be Equal As Integers    ${traffic.late}    0
    Should Be Equal As Integers    ${traffic.lost}    ${{$traffic.sent - $traffic.received}}

Latency Should Be Plausible
    [Documentation]    In both directions: every frame came back once and in its place, in less than a second.
    [Arguments]    ${latency}
    # Frames may be unsent on a busy machine; none of those sent is lost.
    VAR    ${unsent}    ${{$latency.unsent_frames / (2 * $latency.load.per_interface_fps * $latency.duration_s)}}
    Should Be True    $latency.loss_ratio - $unsent < 0.005    ${latency.loss_ratio}, of that unsent: ${unsent}
    Length Should Be    ${latency.directions}    2
    FOR    ${direction}    IN    @{latency.directions}
        Should Be True    $direction.error is None    ${direction.error}
        Should Be True    0 < $direction.least_us <= $direction.mean_us <= $direction.most_us < 1_000_000
        Should Be True    $direction.percentiles_us['50'] <= $direction.percentiles_us['90'] * 1.001
        Should Be Equal As Integers    ${direction.out_of_order_frames}    0
        Should Be Equal As Integers    ${direction.duplicate_frames}    0
        Should Be True    0 < $direction.received_frames == $direction.sent_frames
        Should Be Equal As Numbers    ${direction.resolution_us}    0.1
    END
