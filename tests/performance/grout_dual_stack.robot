*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4 eastward, Eth-IPv6 westward. [Cfg] grout, DPDK's graph router, with a
...               route of each version of IP each way. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical
...               load by counts. [Ref] RFC 2544, RFC 5180.
Metadata          Frame Sizes    78B 128B 256B 512B 1024B 1280B 1518B IMIX
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=grout    cores=${CORES}    dual_stack=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    eth    ip4fwd    ip6fwd    base    dpdk
...               ethip4ip6-base-grout    ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4ip6-base-grout-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ethip6
${FRAME_SIZE}-${CORES}c-ethip4ip6-base-grout-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ethip6
${FRAME_SIZE}-${CORES}c-ethip4ip6-base-grout-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ethip6
