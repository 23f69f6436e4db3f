*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth. [Cfg] VPP as a cross-connect, connected by memif to a second VPP in a
...               container. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC
...               2544.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=l2xc    process=memif    container=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    l2xcfwd    base    memif    docker
...               ${FRAME_SIZE}    ${CORES}c    eth-l2xcbase-eth-2memif-1dcr    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-eth-2memif-1dcr-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-eth-2memif-1dcr-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-eth-2memif-1dcr-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
