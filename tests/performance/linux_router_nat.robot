*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP or TCP. [Cfg] Linux IPv4 router with NAT by nftables (snat).
...               [Ver] Connections per second from an empty table, with none or 0.5 % of them lost. Throughput one
...               way, with all connections established. [Ref] RFC 9693.
Metadata          Frame Sizes    64B
Metadata          Scale    h1024-p63-s64512

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=linux_router    nat=snat
...                   nat_addresses=${{int('${SCALE}'.rpartition('s')[2]) // 64512}}
Suite Teardown    Tear Down Testbed
Test Template     Find Connection Rate

Test Tags         perftest    ndrpdr    eth    ip4fwd    nat44    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
# FD.io CSIT calls all tests of connections 64B; a segment of a handshake has 74 bytes.
${HANDSHAKE}    74B


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udp-linuxnat44-${SCALE}-cps-ndrpdr
    [Tags]    udp_cps    ethip4udp-linuxnat44-${SCALE}-cps
    frame_size=${FRAME_SIZE}    profile=ethip4-udp-${SCALE.rpartition('-')[0]}    goals=${GOALS}
${FRAME_SIZE}-${CORES}c-ethip4tcp-linuxnat44-${SCALE}-cps-ndrpdr
    [Tags]    tcp_cps    ethip4tcp-linuxnat44-${SCALE}-cps
    frame_size=${HANDSHAKE}    profile=ethip4-tcp-${SCALE.rpartition('-')[0]}    goals=${GOALS}
${FRAME_SIZE}-${CORES}c-ethip4udp-linuxnat44-${SCALE}-udir-ndrpdr
    [Tags]    udp_udir    ethip4udp-linuxnat44-${SCALE}-udir
    [Template]    Find NDR And PDR
    ${FRAME_SIZE}    profile=ethip4-udp-${SCALE.rpartition('-')[0]}
