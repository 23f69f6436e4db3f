*** Settings ***
Documentation     Every kind of traffic, as real frames through a kernel that polices: a search finds what the policer
...               passes, N + (B-1)/T, whatever the frames look like, and counts what comes back behind tags and
...               tunnels.

Resource          acceptance.resource

Suite Setup       Set Up A Policer    linux_bridge
Suite Teardown    Tear Down Testbed
Test Template     Policed Throughput Is Found

Test Tags         profiles


*** Variables ***
${RATE}        4 kfps
${BURST}       800
${DURATION}    200 ms
# 4,000 + (800 - 1) / 0.2: the first and the last frame of a trial are a frame less than 0.2 s apart.
${TRUTH}       ${7995}
# Two frames more or less in a trial.
${FRAMES}      ${{2 / 0.2 / 7995}}


*** Test Cases ***    PROFILE    FRAME SIZE
IPv6
    ethip6-udp    78B
VLAN Tags
    dot1q-ip4base    64B
Frames In A Tunnel
    ethip4vxlan-ip4base    114B
A Mix Of Sizes
    ethip4-udp    IMIX_v4_1
Jumbo Frames
    ethip4-udp    9000B
A Million Flows
    ethip4-udp-1mflows    64B
More One Way Than The Other
    ethip4-udp-download    1518B
IPv6 Through A Router
    [Setup]    Set Up A Policer    linux_router    ip_version=6
    ethip6-ip6base    78B


*** Keywords ***
Set Up A Policer
    [Documentation]    A device of some kind that polices both directions.
    [Arguments]    ${dut}    &{options}
    Skip Without A Local Testbed
    Tear Down Testbed
    ${topology}    Making Up For Stalls
    Set Up Testbed    ${topology}    dut=${dut}    police=${RATE}    burst=${BURST}    &{options}

Policed Throughput Is Found
    [Documentation]    The bounds of a quick search enclose what a policer passes, and its result says what was sent.
    [Arguments]    ${profile}    ${frame_size}
    Wait Until Keyword Succeeds    ${ATTEMPTS}    1 s    Bounds Enclose The Policer    ${profile}    ${frame_size}

Bounds Enclose The Policer
    [Documentation]    One attempt.
    [Arguments]    ${profile}    ${frame_size}
    VAR    &{goal}    name=no loss    loss_ratio=0    exceed_ratio=0.75    final_trial_duration=${DURATION}
    ...    duration_sum=600 ms    width=2 %
    ${result}    Find Conditional Throughput
    ...    ${goal}
    ...    frame_size=${frame_size}
    ...    profile=${profile}
    ...    min_load=4 kfps
    ...    max_load=16 kfps
    Should Be Equal    ${result.conditions.traffic.name}    ${profile}
    Should Be Regular And Enclose    ${result.goals}[0]    ${TRUTH}    ${FRAMES}
