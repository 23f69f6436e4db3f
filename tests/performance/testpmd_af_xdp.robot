*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4. [Cfg] DPDK testpmd on AF_XDP sockets. [Ver] NDR
...               and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=testpmd    cores=${CORES}    sockets=af_xdp
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags    perftest
...          eth
...          l2xcfwd
...          base
...          dpdk
...          drv_af_xdp
...          eth-l2xcbase-testpmd-afxdp
...          ${FRAME_SIZE}
...          ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-testpmd-afxdp-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-testpmd-afxdp-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4base
${FRAME_SIZE}-${CORES}c-eth-l2xcbase-testpmd-afxdp-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4base
