*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth. [Cfg] VPP as a cross-connect, connected by vhost-user to a second VPP
...               in a virtual machine. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by
...               counts. [Ref] RFC 2544.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=l2xc    process=vhost    vm=vpp
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    l2xcfwd    base    vhost    vhost_1024    1vm    nf_vppl2xc
...               ${FRAME_SIZE}    ${CORES}c    eth-l2xcbase-eth-2vhostvr1024-1vm-vppl2xc    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-eth-2vhostvr1024-1vm-vppl2xc-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-eth-2vhostvr1024-1vm-vppl2xc-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-eth-2vhostvr1024-1vm-vppl2xc-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
