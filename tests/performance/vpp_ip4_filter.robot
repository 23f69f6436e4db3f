*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] VPP IPv4 router that admits frames by a table of
...               destinations (iacldst) or sources (adlalwlist). [Ver] NDR and PDR by RFC 9971, MRR at maximum load,
...               critical load by counts. [Ref] RFC 2544.
Metadata          Differs From CSIT    classifier
Metadata          Cores    1 2 4
Metadata          Variant iacldst    feature iacldst classify=True
Metadata          Variant adlalwlist    feature adlalwlist allowlist=True

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    ip4fwd    ethip4-ip4base-${VARIANT}base    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
${VARIANT}    iacldst


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-${VARIANT}base-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4src253
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-${VARIANT}base-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4src253
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-${VARIANT}base-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4src253
