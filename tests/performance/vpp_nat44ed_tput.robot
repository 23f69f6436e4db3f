*** Settings ***
Documentation     [Top] TG-DUTs-TG, with TRex. [Enc] Eth-IPv4-UDP or TCP. [Cfg] VPP IPv4 router with NAT44-ED. [Ver]
...               Frames per second of both ends, with none or 0.5 % lost, over connections that were all established
...               before. [Ref] RFC 9693.
Metadata          Cores    1 2 4
Metadata          Frame Sizes    100B 1518B
Metadata          Scale    h1024-p63-s64512 h65536-p63-s4128768

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    nat=nat44-ed
...                   nat_sessions=${SCALE.rpartition('s')[2]}
...                   nat_addresses=${{math.ceil(int('${SCALE}'.rpartition('s')[2]) / 64512)}}
Suite Teardown    Tear Down Testbed
Test Template     Find Connection Rate

Test Tags         perftest    ndrpdr    vpp    eth    ip4fwd    scale    nat44
...               hosts_${SCALE.partition('-')[0].strip('h')}    ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udp-nat44ed-${SCALE}-tput-ndrpdr
    [Tags]    udp    udp_tput    ethip4udp-nat44ed-${SCALE}-tput
    frame_size=${FRAME_SIZE}    profile=ethip4-udp-${SCALE.rpartition('-')[0]}    goals=${GOALS}
    ...    established=True    data_frames=4
${FRAME_SIZE}-${CORES}c-ethip4tcp-nat44ed-${SCALE}-tput-ndrpdr
    [Tags]    tcp    tcp_tput    ethip4tcp-nat44ed-${SCALE}-tput
    frame_size=${FRAME_SIZE}    profile=ethip4-tcp-${SCALE.rpartition('-')[0]}    goals=${GOALS}
    ...    established=True    data_frames=5    closing=fin
