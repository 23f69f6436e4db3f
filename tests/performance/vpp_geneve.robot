*** Settings ***
Documentation     [Top] TG-DUT1-TG. [Enc] Eth-IPv4; on the east link Eth-IPv4-UDP-GENEVE-Eth-IPv4. [Cfg] VPP IPv4 router
...               with GENEVE tunnels to the east, one for each network. [Ver] NDR and PDR by RFC 9971, MRR at
...               maximum load, critical load by counts. [Ref] RFC 2544, RFC 8926.
Metadata          Frame Sizes    64B 128B 256B 512B 1024B 1280B 1518B IMIX
Metadata          Cores    1 2 4
Metadata          Tunnels 1    base
Metadata          Tunnels 4    scale
Metadata          Tunnels 16    scale
Metadata          Tunnels 64    scale
Metadata          Tunnels 256    scale
Metadata          Tunnels 1024    scale

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=1    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    geneve=${TUNNELS}
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    udp    ip4fwd    ip4base    encap    geneve_l3mode    geneve4_${TUNNELS}tun
...               ${FRAME_SIZE}    ${CORES}c    ethip4--ethip4udpgeneve-${TUNNELS}tun-ip4base    # robocop: fmt: off


*** Variables ***
${TUNNELS}    1


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4--ethip4udpgeneve-${TUNNELS}tun-ip4base-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-geneve${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4--ethip4udpgeneve-${TUNNELS}tun-ip4base-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-geneve${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4--ethip4udpgeneve-${TUNNELS}tun-ip4base-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-geneve${TUNNELS}
