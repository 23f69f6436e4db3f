*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv6. [Cfg] VPP IPv6 router that admits frames by a table of
...               destinations (iacldst) or sources (adlalwlist). [Ver] NDR and PDR by RFC 9971, MRR at maximum load,
...               critical load by counts. [Ref] RFC 2544, RFC 5180.
Metadata          Differs From CSIT    classifier
Metadata          Frame Sizes    78B 128B 256B 512B 1024B 1280B 1518B IMIX
Metadata          Cores    1 2 4
Metadata          Variant iacldst    feature iacldst classify=True
Metadata          Variant adlalwlist    feature adlalwlist allowlist=True

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip6
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    ip6fwd    ethip6-ip6base-${VARIANT}base    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
${VARIANT}    iacldst


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip6-ip6base-${VARIANT}base-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip6-ip6base
${FRAME_SIZE}-${CORES}c-ethip6-ip6base-${VARIANT}base-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip6-ip6base
${FRAME_SIZE}-${CORES}c-ethip6-ip6base-${VARIANT}base-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip6-ip6base
