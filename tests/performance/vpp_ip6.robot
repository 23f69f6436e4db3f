*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv6. [Cfg] VPP IPv6 router with one route each way. [Ver] NDR and PDR
...               by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544, RFC 5180.
Metadata          Differs From CSIT    frame size
Metadata          Frame Sizes    78B 128B 256B 512B 1024B 1280B 1518B IMIX
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip6
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    ip6fwd    base    ip6base    ethip6-ip6base    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip6-ip6base-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip6-ip6base
${FRAME_SIZE}-${CORES}c-ethip6-ip6base-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip6-ip6base
${FRAME_SIZE}-${CORES}c-ethip6-ip6base-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip6-ip6base
