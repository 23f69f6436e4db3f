*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] VPP IPv4 router that polices to 50 Mbit/s each way, with
...               bursts of 20 ms. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts.
...               [Ref] RFC 2544, RFC 2697.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    police=50 Mbps
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags    perftest
...          vpp
...          eth
...          ip4fwd
...          policer
...          ethip4-ip4base-ipolicedrop
...          ${FRAME_SIZE}
...          ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-ipolicedrop-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-ipolicedrop-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-ipolicedrop-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
