*** Settings ***
Documentation    A real TRex in the local testbed, in software mode, finds what the kernel's policer passes: N + B/T
...              frames per second for rate N, burst B, and trials of T seconds from rest. Skipped without TREX_HOME.

Library          String
Library          TrexFaults.py
Resource         acceptance.resource

Suite Setup      Skip Without TRex
Test Teardown    Tear Down Everything

Test Tags        trex


*** Variables ***
${TREX}       ${CURDIR}/../../topologies/local-trex.yaml
# In software mode TRex begins up to 50 ms early and sends batches of some milliseconds, and nothing shows a stall, so
# that the policer's rate counts for less time, or for more.
${BATCHES}    ${3e-2}


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

Connection Rates Are Those Of A Limiter
    [Documentation]    TRex is both ends, of UDP and of TCP: the limiter's bucket is full when a trial begins.
    [Template]    Limiter Is Found
    profile=ethip4-udp-connections
    profile=ethip4-tcp-connections
    profile=ethip4-tcp-connections    data_frames=2    closing=fin

A Table Is Full At Its Limit
    [Documentation]    Failed trials leave nothing behind that the next one would suffer from.
    Set Up Testbed    ${TREX}    dut=linux_router    firewall=conntrack    most_connections=1234
    ${result}    Find Connection Table Capacity    100B    max_load=3 kcps    repeats=2
    Should Be Equal    ${{[one.established for one in $result.capacity.searches]}}    ${{[1234, 1234]}}

Established Connections Pass A Limiter Of New Ones
    [Documentation]    It would pass 800 of 1000 new ones.
    Set Up Testbed    ${TREX}    dut=linux_router    nat=masquerade    firewall=conntrack    new_connections=3000
    ...    new_burst=200
    VAR    &{goal}    loss_ratio=0    final_trial_duration=0.2 s    duration_sum=0.2 s
    Find Connection Rate    ${goal}    frame_size=100B    profile=ethip4-udp-h16-p63    max_load=5 kcps
    ...    data_frames=2    established=True
    Throughput Should Be At Least    4.9 kcps

All Connections Are Established Through A NAT
    [Documentation]    Then frames without connections are measured on the same testbed: the server starts anew.
    Set Up Testbed    ${TREX}    dut=linux_router    nat=masquerade
    FOR    ${profile}    IN    ethip4-udp-connections    ethip4-tcp-connections
        ${result}    Measure Connection MRR    100B    ${profile}    max_load=2 kcps    trials=3    data_frames=2
        ...    closing=${{'fin' if 'tcp' in $profile else None}}
        Should Be Equal As Integers    ${result.connections.lost_connections}    0
    END
    ${result}    Measure MRR    100B    ethip4-udp-hosts    max_load=2 kpps    trials=2    bidirectional=no
    Should Be Equal As Integers    ${{sum(trial.lost_frames for trial in $result.trials)}}    0

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

Statistics Of Streams Show Copies
    [Documentation]    First of a device that works, then of one that sends every 32nd frame twice.
    ${topology}    That Stays Up    max_rate: 50 kfps, flow_statistics: true
    Make A Bridge    faulty=${False}
    Set Up Testbed    ${topology}
    ${result}    Measure MRR    IMIX_v4_1    max_load=20 kpps    trials=2    trial_duration=1 s
    Should Be Equal    ${{[0] * 4}}    ${{[one.duplicated_frames for at in $result.trials for one in at.directions]}}
    Should Be Equal    ${{[4] * 4}}    ${{[len(one.streams) for at in $result.trials for one in at.directions]}}
    Make A Bridge    faulty=${True}
    Run Keyword And Expect Error    *came back more than once*duplicated*
    ...    Measure MRR    IMIX_v4_1    max_load=20 kpps    trials=2    trial_duration=1 s    integrity=fail

Sizes That Alone Lose Frames Are Named
    [Documentation]    By the statistics of streams, which are of whole trials.
    ${topology}    That Stays Up    max_rate: 50 kfps, flow_statistics: true
    Make A Bridge That Loses Large Frames
    Set Up Testbed    ${topology}
    ${result}    Measure MRR    IMIX_v4_1    max_load=5 kpps    trials=8    trial_duration=0.5 s
    Should Be Equal    ${result.loss_places.patterns[0].kind}    sizes
    Should Start With    ${result.loss_places.sentences[0]}    All lost frames are of 1,518 B; these lose

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
    ${topology}    With Generator    max_rate: 1 Mfps
    Set Up Testbed    ${topology}    dut=linux_bridge
    VAR    &{goal}    name=half    loss_ratio=50 %    final_trial_duration=1 s    duration_sum=1 s    width=20 %
    TRY
        ${result}    Find Conditional Throughput    ${goal}    frame_size=64B    min_load=9001 pps
        Should Match Regexp    ${result.goals}[0].result.reason    ^the generator's (limit|maximum load)
    EXCEPT    .*generator.*    type=regexp    AS    ${error}
        Log    ${error}
    END

A Server That Is Killed Is Started Anew
    [Documentation]    The trial is measured again, and the result says what was repaired.
    ${topology}    That Stays Up
    Set Up Testbed    ${topology}    dut=linux_bridge    police=10 kfps    burst=1000
    Kill Server Later    8 s
    ${result}    Measure MRR    64B    max_load=5 kpps    trials=10    trial_duration=2 s
    Should Be Equal As Integers    ${{sum(trial.lost_frames for trial in $result.trials)}}    0
    ${repair}    Evaluate    " ".join(repair for trial in $result.trials for repair in trial.repairs)
    Should Contain    ${repair}    TRex server
    Tear Down Testbed
    No Server Should Be Left

A Server That Hangs Is Ended And Started Anew
    [Documentation]    It runs, and does not answer.
    ${topology}    That Stays Up
    Set Up Testbed    ${topology}    dut=linux_bridge    police=10 kfps    burst=1000
    Kill Server Later    8 s    signal=STOP
    ${result}    Measure MRR    64B    max_load=5 kpps    trials=10    trial_duration=2 s
    Should Be Equal As Integers    ${{sum(trial.lost_frames for trial in $result.trials)}}    0
    ${repair}    Evaluate    " ".join(repair for trial in $result.trials for repair in trial.repairs)
    Should Contain    ${repair}    TRex server
    Tear Down Testbed
    No Server Should Be Left

A Controller That Is Killed Leaves No Server And No Traffic Behind
    [Documentation]    The next run on that testbed finds the truth.
    ${topology}    That Stays Up
    Kill A Run In Its Midst    ${topology}    ${OUTPUT_DIR}/killed
    Wait Until Keyword Succeeds    60 s    1 s    No Server Should Be Left
    Set Up Testbed    ${topology}    dut=linux_bridge    police=10 kfps    burst=1000
    Wait Until Keyword Succeeds    ${ATTEMPTS}    1 s    Truth Is Found    ${10250}

A Foreign Server Is Neither Used Nor Stopped
    [Documentation]    It has the same TCP ports, and lossratio has not started it.
    ${topology}    That Stays Up
    ${foreign}    Start Foreign Server
    Set Up Testbed    ${topology}    dut=linux_bridge
    Run Keyword And Expect Error    *TCP port 4501 is in use by a program that lossratio did not start*'rpc_port'*
    ...    Measure MRR    64B    max_load=5 kpps    trials=1
    Tear Down Testbed
    ${left}    Servers
    Should Be Equal    ${left}    ${foreign}

A Server Whose Client Is Of Another Version Is One Clear Error
    [Documentation]    It names both versions, and the field of the topology file.
    Install Of Another Version    %{TREX_HOME}    ${OUTPUT_DIR}/other-version
    ${topology}    With Generator    directory: ${OUTPUT_DIR}/other-version, max_rate: 50 kfps
    Set Up Testbed    ${topology}    dut=linux_bridge
    Run Keyword And Expect Error    *server and client are of different versions*5.1*4.1*'directory'*
    ...    Measure MRR    64B    max_load=5 kpps    trials=1

A Server With Fewer Ports Than The Traffic Needs Is One Clear Error
    [Documentation]    It says which ports there are.
    ${topology}    With TRex On Two Links    arguments: [--limit-ports, "2"]
    Set Up Testbed    ${topology}    dut=linux_bridge    links=2
    Run Keyword And Expect Error    *server has the ports ?0, 1?, but the traffic needs ?0, 1, 2, 3?*
    ...    Measure MRR    64B    max_load=5 kpps    trials=1

Gateways Are Asked Through TRex's Ports
    [Documentation]    As with cards, where the kernel cannot ask.
    Make A Router And A Server
    ${ipv4}    ${ipv6}    ${nobody}    Ask Gateways As With Cards
    Should Be Equal    ${{[len(macs) for macs in $ipv4]}}    ${{[1, 1]}}
    Should Be Equal    ${ipv6}    ${ipv4}
    Should Be Equal    ${nobody}    ${{[[], []]}}

Gateways Are Reminded While Traffic Flows
    [Documentation]    The router's entries live up to 15 s. Without reminders it forgets both ports.
    Make A Router And A Server
    ${lost}    Lost Frames Of A Long Trial Through Gateways    reminded=${True}
    Should Be Equal    ${lost}    ${{[0, 0]}}
    ${lost}    Lost Frames Of A Long Trial Through Gateways    reminded=${False}
    Should Be True    min($lost) > 100    ${lost}

The Cabling Is Looked At Through TRex's Ports
    [Documentation]    As with cards. Two links are in order, and then swapped.
    ${topology}    With Two Bridges
    ${found}    Probe As With Cards    ${topology}    2
    Should Contain    ${found}    TG.port2 > TG.port3: frames of 64 and 1518 bytes come out
    Should Not Contain    ${found}    PROBLEM
    Swap Ports Of The Tester    tg1    tg3
    ${found}    Probe As With Cards    ${topology}    2
    Should Contain    ${found}    PROBLEM: TG.port0: swapped links: frames to TG.port1 come out of TG.port3

Links That Are Swapped Are One Error With The Ports
    [Documentation]    Each port still counts as many frames as it should.
    ${topology}    With Two Bridges
    Swap Ports Of The Tester    tg1    tg3
    Set Up Testbed    ${topology}    links=2
    Run Keyword And Expect Error    *port0>port1 come out of port3 (tg3) instead of port1 (tg1): links are swapped*
    ...    Measure MRR    64B    max_load=5 kpps    trials=1

Swapped Sides Of A Router Are No Fault Of Its Own
    [Documentation]    It drops all frames, and the error says how to find out.
    ${topology}    That Stays Up
    Swap Ports Of The Tester    tg0    tg1
    Set Up Testbed    ${topology}    dut=linux_router
    Run Keyword And Expect Error    *forwards none*Swapped links also look like this*check FILE*--probe*
    ...    Measure MRR    64B    profile=ethip4-udp-hosts    max_load=5 kpps    trials=1


*** Keywords ***
Tear Down Everything
    [Documentation]    The testbed, and the one that stayed up.
    Run Keyword And Continue On Failure    Tear Down Testbed
    Take Testbed Down

No Server Should Be Left
    [Documentation]    No TRex server runs on the tester.
    ${left}    Servers
    Should Be Empty    ${left}

That Stays Up
    [Documentation]    Returns the topology of a testbed that is up until the end of the test.
    [Arguments]    ${settings}=max_rate: 50 kfps
    ${topology}    With Generator    ${settings}
    Keep Testbed Up    ${topology}
    RETURN    ${topology}

With Generator
    [Documentation]    Returns a copy of the local topology with other settings of TRex in software mode.
    [Arguments]    ${settings}
    ${text}    Get File    ${TREX}
    ${text}    Replace String    ${text}    max_rate: 50 kfps    ${settings}
    ${text}    Replace String    ${text}    name: local-trex    name: trex-faults
    VAR    ${copy}    ${OUTPUT_DIR}/trex-faults.yaml
    Create File    ${copy}    ${text}\nreservation: {lease: 4 s}\n
    RETURN    ${copy}

Make A Router And A Server
    [Documentation]    The device is a router, and a server runs on the tester, until the end of the test.
    That Stays Up
    Make A Router
    Start Foreign Server

With Two Bridges
    [Documentation]    Returns the topology of two links, each with a bridge, which is up until the end of the test.
    ${topology}    With TRex On Two Links
    Keep Testbed Up    ${topology}
    Make Two Bridges
    RETURN    ${topology}

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

Limiter Is Found
    [Documentation]    1000 connections/s and a bucket of 100: 1198 in trials of half a second.
    [Arguments]    &{exchange}
    VAR    &{goal}    loss_ratio=0    final_trial_duration=0.5 s    duration_sum=0.5 s    width=2 %
    Set Up Testbed    ${TREX}    dut=linux_router    firewall=conntrack    new_connections=1000    new_burst=100
    ${result}    Find Connection Rate    ${goal}    frame_size=100B    max_load=5 kcps    &{exchange}
    Should Be Regular And Enclose    ${result.goals}[0]    ${1198}    ${0.005}
    [Teardown]    Tear Down Testbed

With TRex On Two Links
    [Documentation]    Returns a copy of the local topology with two links, with TRex as its generator.
    [Arguments]    ${settings}=max_rate: 20 kfps
    ${text}    Get File    ${CURDIR}/../../topologies/local-2links.yaml
    VAR    ${copy}    ${OUTPUT_DIR}/trex-2links.yaml
    ${trex}    Evaluate
    ...    re.sub(r"generator: .*", r'generator: {kind: trex, software: true, ${settings}}', $text)
    ...    modules=re
    Create File    ${copy}    ${trex}
    RETURN    ${copy}

Truth Is Found
    [Documentation]    Searches for the largest load without loss.
    [Arguments]    ${truth}    ${frame_size}=64B    &{traffic}
    VAR    &{goal}    name=no loss in 4 s    loss_ratio=0    initial_trial_duration=4 s    final_trial_duration=4 s
    ...    exceed_ratio=0.75    duration_sum=4 s    width=0.5 %
    ${result}    Find Conditional Throughput    ${goal}    frame_size=${frame_size}    &{traffic}
    VAR    ${report}    ${result.goals}[0]
    Should Be Regular And Enclose    ${report}    ${truth}    ${BATCHES}
