*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] VPP IPv4 router with routes to as many single hosts as its
...               name says, all of them used; -rnd: in random order. [Ver] NDR and PDR by RFC 9971, MRR at maximum
...               load, critical load by counts. [Ref] RFC 2544.
Metadata          Differs From CSIT    frames, routes, cores, frame size
Metadata          Cores    1 2 4
Metadata          Variant 20k    scale fib_20k routes=20000
Metadata          Variant 20k-rnd    scale fib_20k ip4_rnd routes=20000
Metadata          Variant 60k    scale fib_60k routes=60000
Metadata          Variant 60k-rnd    scale fib_60k ip4_rnd routes=60000
Metadata          Variant 200k    scale fib_200k routes=200000
Metadata          Variant 200k-rnd    scale fib_200k ip4_rnd routes=200000
Metadata          Variant 2m    scale fib_2m routes=2000000
Metadata          Variant 2m-rnd    scale fib_2m ip4_rnd routes=2000000

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    routes=20000
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    ip4fwd    ethip4-ip4scale${VARIANT}    ${FRAME_SIZE}    ${CORES}c


*** Variables ***
${VARIANT}    20k


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4-ip4scale${VARIANT}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4scale${VARIANT}
${FRAME_SIZE}-${CORES}c-ethip4-ip4scale${VARIANT}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4scale${VARIANT}
${FRAME_SIZE}-${CORES}c-ethip4-ip4scale${VARIANT}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4scale${VARIANT}
