*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv6. [Cfg] Linux IPv6 router with 20,000 routes to single hosts, all of
...               them used. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC
...               2544, RFC 5180.
Metadata          Frame Sizes    78B 128B 256B 512B 1024B 1280B 1518B IMIX

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=linux_router    ip_version=6    routes=20000
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    eth    ip6fwd    scale    ethip6-ip6scale20k-linux    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip6-ip6scale20k-linux-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip6-ip6scale20k
${FRAME_SIZE}-${CORES}c-ethip6-ip6scale20k-linux-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip6-ip6scale20k
${FRAME_SIZE}-${CORES}c-ethip6-ip6scale20k-linux-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip6-ip6scale20k
