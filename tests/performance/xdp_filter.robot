*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] XDP programs with 100 rules that examine every
...               frame. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=xdp    forwarding=filter    rules=100
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags    perftest
...          eth
...          l2xcfwd
...          feature
...          xdp
...          eth-l2xcbase-xdp100rules
...          ${FRAME_SIZE}
...          ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-xdp100rules-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-xdp100rules-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-xdp100rules-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
