*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth. [Cfg] VPP with two bridge domains or two cross-connects, connected by
...               vhost-user to testpmd or a second VPP in a virtual machine. [Ver] NDR and PDR by RFC 9971, MRR at
...               maximum load, critical load by counts. [Ref] RFC 2544.
Metadata          Cores    1 2 4
Metadata          Variant l2bdbasemaclrn-eth-2vhostvr1024-1vm    l2bdmaclrn nf_testpmd
Metadata          Variant l2bdbasemaclrn-eth-2vhostvr1024-1vm-vppl2xc    l2bdmaclrn nf_vppl2xc vm=vpp
Metadata          Variant l2xcbase-eth-2vhostvr1024-1vm    l2xcfwd nf_testpmd forwarding=l2xc
Metadata          Variant l2xcbase-eth-2vhostvr1024-1vm-vppl2xc    l2xcfwd nf_vppl2xc forwarding=l2xc vm=vpp

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=l2bd    process=vhost    vm=testpmd
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    base    vhost    vhost_1024    1vm
...               ${FRAME_SIZE}    ${CORES}c    eth-${VARIANT}    # robocop: fmt: off


*** Variables ***
${VARIANT}    l2bdbasemaclrn-eth-2vhostvr1024-1vm


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-${VARIANT}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-${VARIANT}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-${VARIANT}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
