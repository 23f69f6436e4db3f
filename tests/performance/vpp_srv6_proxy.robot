*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv6; behind the first DUT Eth-IPv6-SRH-IPv6. [Cfg] Two VPPs that
...               steer packets to each other. Their proxies send the packets through a service: a VPP in a container,
...               connected by memif. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts.
...               [Ref] RFC 2544, RFC 5180, RFC 8986.
Metadata          Frame Sizes    78B 128B 256B 512B 1024B 1280B 1518B IMIX
Metadata          Cores    1 2 4
Metadata          Variant dyn    srv6_proxy_dyn srv6_proxy=dynamic    container=True
Metadata          Variant masq    srv6_proxy_masq srv6_proxy=masquerading
Metadata          Variant stat    srv6_proxy_stat srv6_proxy=static

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip6    srv6_proxy=dynamic    container=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    ip6fwd    feature    srv6    srv6_proxy    memif    docker
...               ${FRAME_SIZE}    ${CORES}c    ethip6srhip6-ip6base-srv6proxy-${VARIANT}    # robocop: fmt: off


*** Variables ***
${VARIANT}    dyn


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip6srhip6-ip6base-srv6proxy-${VARIANT}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip6-ip6base
${FRAME_SIZE}-${CORES}c-ethip6srhip6-ip6base-srv6proxy-${VARIANT}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip6-ip6base
${FRAME_SIZE}-${CORES}c-ethip6srhip6-ip6base-srv6proxy-${VARIANT}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip6-ip6base
