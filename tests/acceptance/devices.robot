*** Settings ***
Documentation    Every kind of device on the local testbed: those with a policer are measured, and the result encloses
...              what the policer passes; after that, each frame of a trial is accounted for. Where a device is not
...              installed, its test is skipped and says which package it takes.

Library          DutFaults.py
Resource         acceptance.resource

Suite Setup      Skip Without A Local Testbed
Test Teardown    Tear Down Testbed

Test Tags        devices


*** Variables ***
${CABLE}            ${CURDIR}/../../topologies/local-cable.yaml
${VPP_STAND_IN}     ${CURDIR}/../unit/dut/vpp_stand_in
# Frames per second of a policer, and frames in a full bucket; with that it passes the truth, N + (B-1)/T, in trials of
# 0.2 s: the first and the last frame are a frame less than that apart.
&{POLICER}          police=3 kfps    burst=1200
${TRUTH}            ${8995}
# VPP polices 60 bytes of each frame: these are 5 kfps, and a bucket of 4,000 frames.
&{VPP_POLICER}      police=2400 kbps    burst=240000
${VPP_TRUTH}        ${24_995}
# VPP polices a frame when it comes to it, not when it arrived: one that is late with a trial's last frames polices them
# with the tokens of that time. A busy machine made it late by up to 10 ms: that is 50 frames, of 4,999 in a trial.
${VPP_LATE}         ${50}
# Packet sockets hold 300 frames, which Open vSwitch must fetch in time.
&{SLOW_POLICER}     police=1 kfps    burst=400
${SLOW_TRUTH}       ${2995}
# Strict, and quick: what a policer passes is the same however short the trials are.
&{QUICK}            name=quick    loss_ratio=0    exceed_ratio=0.75    final_trial_duration=200 ms
...                 duration_sum=600 ms    width=2 %
# Most trials decide, as a late VPP passes more.
&{VPP_GOAL}         &{QUICK}    exceed_ratio=0.5
# Without loss in any trial, as before a reconfiguration, and quick.
&{STRICT}           name=strict    loss_ratio=0    exceed_ratio=0.5    final_trial_duration=200 ms
...                 duration_sum=400 ms    width=20 %
${SLOW_STAND_IN}    4 kpps


*** Test Cases ***
Cable
    [Documentation]    Nothing stands between the ports.
    Set Up Testbed    ${CABLE}    dut=none
    ${result}    Measure MRR    64B    trials=1    trial_duration=200 ms    max_load=20 kpps
    Should Be Equal As Integers    ${result.mrr.lost_frames}    0

Linux Bridge Between VXLAN Tunnels
    [Documentation]    The policer is behind the first tunnel's end.
    Policer Is Found    ${TRUTH}    linux_bridge    114B    ethip4vxlan-l2bdbase    vxlan=true    rules=5    &{POLICER}

Linux Router With Many IPv6 Routes
    [Documentation]    Test traffic goes to as many hosts as there are routes.
    Policer Is Found    ${TRUTH}    linux_router    78B    ethip6-ip6scale20k    ip_version=6    routes=20000
    ...    &{POLICER}

Open VSwitch
    [Documentation]    A meter polices.
    Skip Without    ovs-vswitchd    openvswitch-switch
    Skip Without Root
    Policer Is Found    ${SLOW_TRUTH}    ovs    64B    ethip4-ip4base    &{SLOW_POLICER}

Testpmd
    [Documentation]    Nothing is known about it beforehand, but each frame is accounted for.
    Skip Without    dpdk-testpmd    dpdk-dev
    Set Up Testbed    ${LOCAL}    dut=testpmd    mode=mac
    Find Conditional Throughput    ${QUICK}    frame_size=64B    max_load=5 kpps
    Every Frame Is Accounted For

VPP As Its Stand-In
    [Documentation]    Answers as VPP does, so that everything but VPP is seen to work.
    ${topology}    Making Up For Stalls
    Set Up Testbed    ${topology}    dut=vpp    home=${VPP_STAND_IN}    forwarding=ip4    routes=20000
    Find Conditional Throughput    ${QUICK}    frame_size=64B    profile=ethip4-ip4scale20k
    ...    min_load=1 kpps    max_load=${SLOW_STAND_IN}
    ${trial}    Every Frame Is Accounted For
    Should Contain    ${trial.duts[0].told}    show runtime

VPP
    [Documentation]    A policer of VPP's passes (bit rate + 8 bucket / T) / (8 (frame size - 4)) frames per second.
    [Tags]    vpp
    ${home}    Get Environment Variable    VPP_HOME    ${EMPTY}
    Skip If    not $home    No VPP here; the environment variable VPP_HOME says where one is installed.
    Retry Until Its DUT Has A CPU    VPP Policer Is Found

Killed During A Search
    [Documentation]    One error with the last output, and the next test begins afresh.
    Skip Without    dpdk-testpmd    dpdk-dev
    Set Up Testbed    ${LOCAL}    dut=testpmd
    Kill Program Later    testpmd    2 s
    Run Keyword And Expect Error    DutError: DUT1: testpmd has died*Its last output:*set it up again.
    ...    Find Conditional Throughput    NDR    frame_size=64B    max_load=20 kpps
    Tear Down Testbed
    Set Up Testbed    ${LOCAL}    dut=testpmd
    Measure MRR    64B    trials=1    trial_duration=200 ms    max_load=10 kpps

Rule That Nobody Asked For
    [Documentation]    The error names it, before any search.
    Set Up Testbed    ${LOCAL}    dut=linux_bridge
    Stop Forwarding
    Run Keyword And Expect Error    DutError: DUT1 has changed since its set-up: the nftables table bridge gap was*
    ...    Find NDR And PDR    64B

Reconfigured Bridge And Router
    [Documentation]    Neither loses anything as its table grows.
    FOR    ${kind}    IN    linux_bridge    linux_router
        Wait Until Keyword Succeeds    ${ATTEMPTS}    5 s    Nothing Is Lost As A Table Grows    ${kind}
    END

Reconfiguration That Loses Frames
    [Documentation]    A gap of half a second is a lost time of half a second.
    Wait Until Keyword Succeeds    ${ATTEMPTS}    5 s    A Gap Of Half A Second Is Found


*** Keywords ***
Policer Is Found
    [Documentation]    Searches until the machine was not too busy, and accounts for a trial's frames.
    [Arguments]    ${truth}    ${kind}    ${frame_size}    ${profile}    &{options}
    Retry Until Its DUT Has A CPU
    ...    Policer Is Found Once
    ...    ${truth}
    ...    ${kind}
    ...    ${frame_size}
    ...    ${profile}
    ...    &{options}

Policer Is Found Once
    [Documentation]    Searches, and accounts for a trial's frames.
    [Arguments]    ${truth}    ${kind}    ${frame_size}    ${profile}    &{options}
    Tear Down Testbed
    ${topology}    Making Up For Stalls
    Set Up Testbed    ${topology}    dut=${kind}    &{options}
    ${result}    Find Conditional Throughput    ${QUICK}    frame_size=${frame_size}    profile=${profile}
    ...    min_load=${{$truth / 5}}    max_load=${{$truth * 3}}
    # Two frames more or less in a trial.
    Should Be Regular And Enclose    ${result.goals}[0]    ${truth}    ${{2 / 0.2 / $truth}}
    Every Frame Is Accounted For

VPP Policer Is Found
    [Documentation]    A bucket that holds most of what passes makes a late VPP matter little.
    Tear Down Testbed
    ${topology}    Making Up For Stalls
    Set Up Testbed    ${topology}    dut=vpp    forwarding=ip4    &{VPP_POLICER}
    ${result}    Find Conditional Throughput
    ...    ${VPP_GOAL}
    ...    frame_size=64B
    ...    profile=ethip4-ip4base
    ...    max_load=100 kpps
    Should Be Regular And Enclose    ${result.goals}[0]    ${VPP_TRUTH}    ${{$VPP_LATE / 0.2 / $VPP_TRUTH}}
    Every Frame Is Accounted For

Every Frame Is Accounted For
    [Documentation]    In a trial after the search, at its relevant lower bound: what is sent is forwarded, or dropped
    ...    at a place that has a name. Returns the trial.
    ${result}    Collect Telemetry    duration=200 ms
    VAR    ${trial}    ${result.telemetry[-1]}
    VAR    ${dut}    ${trial.duts[0]}
    Should Be Equal As Integers    ${dut.unaccounted_frames}    0
    Should Be Equal As Integers    ${trial.sent_frames}    ${{sum($dut.received_frames.values())}}
    Should Be Equal As Integers    ${trial.received_frames}    ${{sum($dut.transmitted_frames.values())}}
    RETURN    ${trial}

Nothing Is Lost As A Table Grows
    [Documentation]    2,000 entries, in the midst of traffic.
    [Arguments]    ${kind}
    Tear Down Testbed
    ${topology}    Making Up For Stalls
    Set Up Testbed    ${topology}    dut=${kind}
    ${result}    Measure Reconfiguration Loss    64B    goal=${STRICT}    max_load=2 kpps    entries=2000
    Should Be Equal As Integers    ${result.loss.lost_frames}    0

A Gap Of Half A Second Is Found
    [Documentation]    Or up to 0.25 s more, which the commands that begin and end it may take.
    Tear Down Testbed
    ${topology}    Making Up For Stalls
    Set Up Testbed    ${topology}    dut=linux_bridge
    ${result}    Measure Reconfiguration Loss    64B    goal=${STRICT}    max_load=2 kpps
    ...    keyword=A Gap Of Half A Second
    Should Be True    0.49 <= $result.loss.lost_time_s <= 0.75    ${result.loss.lost_time_s}

A Gap Of Half A Second
    [Documentation]    The bridge drops everything for that long.
    Stop Forwarding    500 ms

Skip Without
    [Documentation]    Skips where a program is not installed, and names its package.
    [Arguments]    ${program}    ${package}
    ${path}    Evaluate    shutil.which($program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")    modules=shutil,os
    Skip If    $path is None    No ${program} here; Debian's package is ${package}.

Skip Without Root
    [Documentation]    Skips where TAP devices cannot be had.
    Skip If    ${{os.geteuid()}} != 0    Open vSwitch's userspace datapath takes root.
