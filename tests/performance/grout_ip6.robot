*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv6. [Cfg] grout, DPDK's graph router, with a route each way. [Ver] NDR
...               and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544, RFC 5180.
Metadata          Frame Sizes    78B 128B 256B 512B 1024B 1280B 1518B IMIX
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=grout    cores=${CORES}    ip_version=6
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    eth    ip6fwd    base    dpdk    ethip6-ip6base-grout    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip6-ip6base-grout-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip6-ip6base
${FRAME_SIZE}-${CORES}c-ethip6-ip6base-grout-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip6-ip6base
${FRAME_SIZE}-${CORES}c-ethip6-ip6base-grout-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip6-ip6base
