*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth, Eth-IPv4. [Cfg] VPP with two tables of routes, two bridge domains or two
...               cross-connects, connected by memif to a second VPP in a container. [Ver] NDR and PDR by RFC 9971, MRR
...               at maximum load, critical load by counts. [Ref] RFC 2544.
Metadata          Cores    1 2 4
Metadata          Variant eth-l2bdbasemaclrn    l2bdmaclrn
Metadata          Variant eth-l2xcbase    l2xcfwd forwarding=l2xc
Metadata          Variant ethip4-ip4base    ip4fwd forwarding=ip4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=l2bd    process=memif    container=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    base    memif    docker
...               ${FRAME_SIZE}    ${CORES}c    ${VARIANT}-eth-2memif-1dcr    # robocop: fmt: off


*** Variables ***
${VARIANT}    eth-l2bdbasemaclrn


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-${VARIANT}-eth-2memif-1dcr-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-${VARIANT}-eth-2memif-1dcr-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-${VARIANT}-eth-2memif-1dcr-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
