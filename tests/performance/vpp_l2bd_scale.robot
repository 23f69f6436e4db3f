*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] VPP with a bridge domain that learns as many addresses as
...               its name says. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref]
...               RFC 2544.
Metadata          Differs From CSIT    frame size
Metadata          Cores    1 2 4
Metadata          Variant 10k    l2bdscale scale fib_10k macs=10000
Metadata          Variant 100k    l2bdscale scale fib_100k macs=100000
Metadata          Variant 1m    l2bdscale scale fib_1m macs=1000000

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=l2bd    macs=10000
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    l2bdmaclrn    eth-l2bdscale${VARIANT}maclrn    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
${VARIANT}    10k


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2bdscale${VARIANT}maclrn-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=eth-l2bdscale${VARIANT}
${FRAME_SIZE}-${CORES}c-eth-l2bdscale${VARIANT}maclrn-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=eth-l2bdscale${VARIANT}
${FRAME_SIZE}-${CORES}c-eth-l2bdscale${VARIANT}maclrn-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=eth-l2bdscale${VARIANT}
