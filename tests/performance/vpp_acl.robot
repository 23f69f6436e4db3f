*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP. [Cfg] VPP IPv4 routers. The first has 50 rules that no frame
...               matches, on the way in (iacl) or out (oacl), without (sl) or with (sf) sessions of 10,000 flows.
...               [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544.
Metadata          Cores    1 2 4
Metadata          Variant iacl50sl    acl50 iacl acl_stateless
Metadata          Variant iacl50sf    acl50 iacl acl_stateful acl_stateful=True
Metadata          Variant oacl50sl    acl50 oacl acl_stateless acl_output=True
Metadata          Variant oacl50sf    acl50 oacl acl_stateful acl_output=True acl_stateful=True

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    acl=50
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    ip4fwd    feature    acl    10k_flows
...               ethip4udp-ip4base-${VARIANT}-10kflows    ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Variables ***
${VARIANT}    iacl50sl


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udp-ip4base-${VARIANT}-10kflows-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-udp-10u1000p
${FRAME_SIZE}-${CORES}c-ethip4udp-ip4base-${VARIANT}-10kflows-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-udp-10u1000p
${FRAME_SIZE}-${CORES}c-ethip4udp-ip4base-${VARIANT}-10kflows-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-udp-10u1000p
