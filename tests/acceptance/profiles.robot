*** Settings ***
Documentation    Every kind of traffic, as real frames through a kernel that polices: a search finds what the policer
...              passes, N + B/T, whatever the frames look like, and counts what comes back behind tags and tunnels.

Resource         acceptance.resource

Suite Setup      Skip Without A Local Testbed
Test Teardown    Tear Down Testbed
Test Template    Policed Throughput Is Found

Test Tags        profiles


*** Variables ***
${RATE}        20 kfps
${BURST}       400
${DURATION}    200 ms
# 20,000 + 400 / 0.2
${TRUTH}       ${22_000}


*** Test Cases ***    PROFILE    FRAME SIZE    DUT
IPv6 Through A Bridge
    ethip6-udp    78B    linux_bridge
IPv6 Through A Router
    ethip6-ip6base    78B    linux_router    ip_version=6
VLAN Tags
    dot1q-ip4base    64B    linux_bridge
Frames In A Tunnel
    ethip4vxlan-ip4base    114B    linux_bridge
A Mix Of Sizes
    ethip4-udp    IMIX_v4_1    linux_bridge
Jumbo Frames
    ethip4-udp    9000B    linux_bridge
A Million Flows
    ethip4-udp-1mflows    64B    linux_bridge
More One Way Than The Other
    ethip4-udp-download    1518B    linux_bridge


*** Keywords ***
Policed Throughput Is Found
    [Documentation]    The bounds of a quick search enclose what a policer passes, and its result says what was sent.
    [Arguments]    ${profile}    ${frame_size}    ${dut}    &{options}
    Wait Until Keyword Succeeds    ${ATTEMPTS}    1 s
    ...    Bounds Enclose The Policer    ${profile}    ${frame_size}    ${dut}    &{options}

Bounds Enclose The Policer
    [Documentation]    One attempt.
    [Arguments]    ${profile}    ${frame_size}    ${dut}    &{options}
    Tear Down Testbed
    Set Up Testbed    ${LOCAL}    dut=${dut}    police=${RATE}    burst=${BURST}    &{options}
    VAR    &{goal}    name=no loss    loss_ratio=0    exceed_ratio=0.75    final_trial_duration=${DURATION}
    ...    duration_sum=600 ms    width=2 %
    ${result}    Find Conditional Throughput
    ...    ${goal}
    ...    frame_size=${frame_size}
    ...    profile=${profile}
    ...    min_load=10 kfps
    ...    max_load=40 kfps
    Should Be Equal    ${result.conditions.traffic.name}    ${profile}
    Should Be Regular And Enclose    ${result.goals}[0]    ${TRUTH}
