*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4, between the DUTs IPv4-UDP-GTPU-IPv4. [Cfg] Two VPPs with a
...               GTP-U tunnel between them; -reassembly: packets of more than 1043 bytes are fragmented. [Ver] NDR
...               and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544, 3GPP TS
...               29.281.
Metadata          Cores    1 2 4
Metadata          Variant gtpusw-ip4base    encap gtpu
Metadata          Variant gtpusw-ip4base-reassembly    encap gtpu reassembly gtpu_mtu=1043

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    gtpu=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    ip4fwd    ip4base    ethip4${VARIANT}    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
${VARIANT}    gtpusw-ip4base


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4${VARIANT}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4src253
${FRAME_SIZE}-${CORES}c-ethip4${VARIANT}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4src253
${FRAME_SIZE}-${CORES}c-ethip4${VARIANT}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4src253
