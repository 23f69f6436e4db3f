*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4, between the DUTs IPv6-IPv4 or IPv6-SRH-IPv4. [Cfg] Two grouts,
...               DPDK's graph router, each of which encapsulates packets for a segment of the other one. [Ver] NDR and
...               PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544, RFC 8986, RFC 9800.
Metadata          Cores    1 2 4
Metadata          Variant ethip6srhip4-ip4base-srv6encaps-grout    feature
Metadata          Variant ethip6ip4-ip4base-srv6encapsred-grout    feature srv6=encaps_red
Metadata          Variant ethip6srhip4-ip4base-srv6end-grout    feature srv6=end
Metadata          Variant ethip6ip4-ip4base-srv6usid-grout    feature srv6=usid

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=grout    cores=${CORES}    srv6=encaps
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    eth    ip4fwd    srv6    dpdk    ${VARIANT}    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
${VARIANT}    ethip6srhip4-ip4base-srv6encaps-grout


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-${VARIANT}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-${VARIANT}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-${VARIANT}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
