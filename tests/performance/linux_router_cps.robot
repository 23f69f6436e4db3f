*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP or TCP. [Cfg] Linux IPv4 router, which tracks no connections
...               and so shows the tester's own limit, for linux_router_nat. [Ver] Connections per second, with none
...               or 0.5 % of them lost. [Ref] RFC 9693.
Metadata          Frame Sizes    64B
Metadata          Scale    h1024-p63-s64512

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=linux_router
Suite Teardown    Tear Down Testbed
Test Template     Find Connection Rate

Test Tags         perftest    ndrpdr    eth    ip4fwd    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
# FD.io CSIT calls all tests of connections 64B; a segment of a handshake has 74 bytes.
${HANDSHAKE}    74B


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udp-linuxip4base-${SCALE}-cps-ndrpdr
    [Tags]    udp_cps    ethip4udp-linuxip4base-${SCALE}-cps
    frame_size=${FRAME_SIZE}    profile=ethip4-udp-${SCALE.rpartition('-')[0]}    stateless=True    goals=${GOALS}
${FRAME_SIZE}-${CORES}c-ethip4tcp-linuxip4base-${SCALE}-cps-ndrpdr
    [Tags]    tcp_cps    ethip4tcp-linuxip4base-${SCALE}-cps
    frame_size=${HANDSHAKE}    profile=ethip4-tcp-${SCALE.rpartition('-')[0]}    stateless=True    goals=${GOALS}
