*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP or TCP. [Cfg] VPP IPv4 router with NAT44, endpoint-dependent.
...               [Ver] Connections per second; NDR, PDR and MRR one way over established ones. [Ref] RFC 9693.
Metadata          Cores    1 2 4
Metadata          Frame Sizes    64B
Metadata          Scale    h1024-p63-s64512 h65536-p63-s4128768

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    nat=nat44-ed
...                   nat_sessions=${SCALE.rpartition('s')[2]}    udp_timeout=50 min
...                   nat_addresses=${{math.ceil(int('${SCALE}'.rpartition('s')[2]) / 64512)}}
Suite Teardown    Tear Down Testbed
Test Template     Find Connection Rate

Test Tags         perftest    vpp    eth    ip4fwd    feature    nat44_endpoint_dependent    scale    nat44
...               hosts_${SCALE.partition('-')[0].strip('h')}    ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udp-nat44ed-${SCALE}-cps-ndrpdr
    [Tags]    ndrpdr    udp    udp_cps    ethip4udp-nat44ed-${SCALE}-cps
    frame_size=${FRAME_SIZE}    profile=ethip4-udp-${SCALE.rpartition('-')[0]}    goals=${GOALS}
${FRAME_SIZE}-${CORES}c-ethip4tcp-nat44ed-${SCALE}-cps-ndrpdr
    [Tags]    ndrpdr    tcp    tcp_cps    ethip4tcp-nat44ed-${SCALE}-cps
    frame_size=74B    profile=ethip4-tcp-${SCALE.rpartition('-')[0]}    goals=${GOALS}    closing=fin    # CSIT's 64B
${FRAME_SIZE}-${CORES}c-ethip4udp-nat44ed-${SCALE}-udir-ndrpdr
    [Tags]    ndrpdr    udp    udp_udir    ethip4udp-nat44ed-${SCALE}-udir
    [Template]    Find NDR And PDR
    ${FRAME_SIZE}    profile=ethip4-udp-${SCALE.rpartition('-')[0]}
${FRAME_SIZE}-${CORES}c-ethip4udp-nat44ed-${SCALE}-udir-mrr
    [Tags]    mrr    udp    udp_udir    ethip4udp-nat44ed-${SCALE}-udir
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-udp-${SCALE.rpartition('-')[0]}
