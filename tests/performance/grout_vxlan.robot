*** Settings ***
Documentation     [Top] TG-DUT1-TG. [Enc] Eth-IPv4-VXLAN-Eth-IPv4. [Cfg] grout, DPDK's graph router, as a bridge between
...               two VXLAN tunnels. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref]
...               RFC 2544, RFC 7348.
Metadata          Frame Sizes    114B 128B 256B 512B 1024B 1280B 1518B IMIX
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=1    nic=${NIC}
...                   dut=grout    cores=${CORES}    vxlan=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vxlan    l2bdmaclrn    base    dpdk
...               ethip4vxlan-l2bdbase-grout    ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4vxlan-l2bdbase-grout-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4vxlan-l2bdbase
${FRAME_SIZE}-${CORES}c-ethip4vxlan-l2bdbase-grout-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4vxlan-l2bdbase
${FRAME_SIZE}-${CORES}c-ethip4vxlan-l2bdbase-grout-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4vxlan-l2bdbase
