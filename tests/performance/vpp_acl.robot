*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP. [Cfg] VPP IPv4 router, every frame walks 50 stateless rules of
...               an access list; 10,000 flows. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by
...               PLRsearch. [Ref] RFC 2544.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    acl=50
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags    perftest
...          vpp
...          ethip4
...          ip4fwd
...          iacl
...          ethip4udp-ip4base-iacl50sl-10kflows
...          ${FRAME_SIZE}
...          ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udp-ip4base-iacl50sl-10kflows-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-udp-10kflows
${FRAME_SIZE}-${CORES}c-ethip4udp-ip4base-iacl50sl-10kflows-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-udp-10kflows
${FRAME_SIZE}-${CORES}c-ethip4udp-ip4base-iacl50sl-10kflows-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-udp-10kflows
