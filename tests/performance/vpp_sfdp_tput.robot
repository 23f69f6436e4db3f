*** Settings ***
Documentation     [Top] TG-DUTs-TG, with TRex. [Enc] Eth-IPv4-UDP. [Cfg] VPP IPv4 router with stateful flows (SFDP),
...               whose sessions follow the states of UDP and TCP (l4ip4) or not (ip4). [Ver] Frames per second of
...               both ends, with none or 0.5 % lost, over connections that were all established before. [Ref] RFC
...               9693.
Metadata          Cores    1 2 4
Metadata          Frame Sizes    100B 1518B
Metadata          Sessions
...               ip4-h1024-p63-s64512 l4ip4-h1024-p63-s64512 ip4-h65536-p63-s4128768 l4ip4-h65536-p63-s4128768

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    sfdp=${SESSIONS.partition('-')[0]}
...                   sfdp_sessions=${SESSIONS.rpartition('s')[2]}
Suite Teardown    Tear Down Testbed
Test Template     Find Connection Rate

Test Tags         perftest    ndrpdr    vpp    eth    ip4fwd    ip4base    scale    sfdp
...               hosts_${SESSIONS.split('-')[1].strip('h')}    ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udp-sfdp-${SESSIONS}-tput-ndrpdr
    [Tags]    udp    udp_tput    ethip4udp-sfdp-${SESSIONS}-tput
    frame_size=${FRAME_SIZE}    profile=ethip4-udp-${SESSIONS.split('-')[1]}-p63    goals=${GOALS}
    ...    established=True    data_frames=4
