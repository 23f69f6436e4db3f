*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv6, between the DUTs IPv6-IPv6 or IPv6-SRH-IPv6. [Cfg] Two VPPs,
...               each of which steers packets to one or two segments of the other one; -nodecaps: the second one is
...               behind the path. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref]
...               RFC 2544, RFC 5180, RFC 8986.
Metadata          Frame Sizes    78B 128B 256B 512B 1024B 1280B 1518B IMIX
Metadata          Cores    1 2 4
Metadata          Variant ethip6ip6-ip6base-srv6enc1sid    feature srv6 srv6_1sid srv6=1
Metadata          Variant ethip6srhip6-ip6base-srv6enc2sids    feature srv6 srv6_2sid_decap srv6=2
Metadata          Variant ethip6srhip6-ip6base-srv6enc2sids-nodecaps    feature srv6 srv6_2sid_nodecap srv6=2
...               srv6_decapsulation=False

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip6    srv6=1
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    ip6fwd    ${VARIANT}    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
${VARIANT}    ethip6ip6-ip6base-srv6enc1sid


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-${VARIANT}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip6-ip6base
${FRAME_SIZE}-${CORES}c-${VARIANT}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip6-ip6base
${FRAME_SIZE}-${CORES}c-${VARIANT}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip6-ip6base
