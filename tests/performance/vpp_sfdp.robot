*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP or TCP. [Cfg] VPP IPv4 router with stateful flows (SFDP), whose
...               sessions follow the states of UDP and TCP (l4ip4) or not (ip4). [Ver] Connections per second from an
...               empty table, with none or 0.5 % of them lost. [Ref] RFC 9693.
Metadata          Cores    1 2 4
Metadata          Frame Sizes    64B
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


*** Variables ***
# FD.io CSIT calls all tests of connections 64B; a segment of a handshake has 74 bytes.
${HANDSHAKE}    74B


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udp-sfdp-${SESSIONS}-cps-ndrpdr
    [Tags]    udp    udp_cps    ethip4udp-sfdp-${SESSIONS}-cps
    frame_size=${FRAME_SIZE}    profile=ethip4-udp-${SESSIONS.split('-')[1]}-p63    goals=${GOALS}
${FRAME_SIZE}-${CORES}c-ethip4tcp-sfdp-${SESSIONS}-cps-ndrpdr
    [Tags]    tcp    tcp_cps    ethip4tcp-sfdp-${SESSIONS}-cps
    frame_size=${HANDSHAKE}    profile=ethip4-tcp-${SESSIONS.split('-')[1]}-p63    goals=${GOALS}    closing=fin
