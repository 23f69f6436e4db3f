*** Settings ***
Documentation     [Top] TG-DUT1-TG. [Enc] Eth-IPv4-VXLAN-Eth-IPv4. [Cfg] VPP with a bridge domain or a cross-connect
...               between two VXLAN tunnels. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by
...               PLRsearch. [Ref] RFC 2544, RFC 7348.
Metadata          Differs From CSIT    nodes, frames, frame size, vxlan
Metadata          Frame Sizes    114B 128B 256B 512B 1024B 1280B 1518B IMIX
Metadata          Cores    1 2 4
Metadata          Variant l2bdbasemaclrn    l2bdmaclrn
Metadata          Variant l2xcbase    l2xcfwd forwarding=l2xc

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=1    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=l2bd    vxlan=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    vxlan    ethip4vxlan-${VARIANT}    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
${VARIANT}    l2bdbasemaclrn


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4vxlan-${VARIANT}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4vxlan-l2bdbase
${FRAME_SIZE}-${CORES}c-ethip4vxlan-${VARIANT}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4vxlan-l2bdbase
${FRAME_SIZE}-${CORES}c-ethip4vxlan-${VARIANT}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4vxlan-l2bdbase
