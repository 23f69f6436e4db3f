*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP or TCP. [Cfg] VPP IPv4 router, which tracks no connections and
...               so shows the tester's own limit, for vpp_nat44ed. [Ver] Connections per second, with none or 0.5 %
...               of them lost. [Ref] RFC 9693.
Metadata          Cores    1 2 4
Metadata          Frame Sizes    64B
Metadata          Scale    h1024-p63-s64512 h65536-p63-s4128768

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4
Suite Teardown    Tear Down Testbed
Test Template     Find Connection Rate

Test Tags         perftest    ndrpdr    vpp    eth    ip4fwd    ip4base    scale
...               hosts_${SCALE.partition('-')[0].strip('h')}    ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Variables ***
# FD.io CSIT calls all tests of connections 64B; a segment of a handshake has 74 bytes.
${HANDSHAKE}    74B


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udp-ip4base-${SCALE}-cps-ndrpdr
    [Tags]    udp    udp_cps    ethip4udp-ip4base-${SCALE}-cps
    frame_size=${FRAME_SIZE}    profile=ethip4-udp-${SCALE.rpartition('-')[0]}    stateless=True    goals=${GOALS}
${FRAME_SIZE}-${CORES}c-ethip4tcp-ip4base-${SCALE}-cps-ndrpdr
    [Tags]    tcp    tcp_cps    ethip4tcp-ip4base-${SCALE}-cps
    frame_size=${HANDSHAKE}    profile=ethip4-tcp-${SCALE.rpartition('-')[0]}    stateless=True    goals=${GOALS}
    ...    closing=fin
