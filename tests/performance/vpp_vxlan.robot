*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4; between the DUTs Eth-IPv4-VXLAN-Eth-IPv4. [Cfg] Two VPPs, each
...               with a bridge domain or a cross-connect between its link to the TG and a VXLAN tunnel to the other
...               one. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by
...               counts. [Ref] RFC 2544, RFC 7348.
Metadata          Cores    1 2 4
Metadata          Variant l2bdbasemaclrn    l2bdmaclrn
Metadata          Variant l2xcbase    l2xcfwd forwarding=l2xc

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=l2bd    vxlan_between=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    encap    vxlan    l2ovrlay    ip4unrlay
...               ethip4vxlan-${VARIANT}    ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Variables ***
${VARIANT}    l2bdbasemaclrn


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4vxlan-${VARIANT}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-ethip4vxlan-${VARIANT}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-ethip4vxlan-${VARIANT}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
