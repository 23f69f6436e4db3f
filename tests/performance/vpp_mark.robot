*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] VPP IPv4 router with a policer of three colours that marks
...               frames within 307 kbit/s. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts.
...               [Ref] RFC 2544, RFC 2698.
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    mark=AF22
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    ip4fwd    feature    police_mark
...               ethip4-ip4base-ipolicemarkbase    ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-ipolicemarkbase-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base-marked
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-ipolicemarkbase-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base-marked
${FRAME_SIZE}-${CORES}c-ethip4-ip4base-ipolicemarkbase-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base-marked
