*** Settings ***
Documentation     [Top] TG-DUT1-TG. [Enc] Eth-IPv4-VXLAN-Eth-IPv4. [Cfg] Linux bridge between two VXLAN tunnels. [Ver]
...               NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 2544, RFC 7348.
Metadata          Frame Sizes    114B 128B 256B 512B 1024B 1280B 1518B IMIX

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=1    nic=${NIC}
...                   dut=linux_bridge    vxlan=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vxlan    l2bdmacstat    base    ethip4vxlan-l2bdbase-linux    ${FRAME_SIZE}    ${CORES}c


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4vxlan-l2bdbase-linux-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4vxlan-l2bdbase
${FRAME_SIZE}-${CORES}c-ethip4vxlan-l2bdbase-linux-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4vxlan-l2bdbase
${FRAME_SIZE}-${CORES}c-ethip4vxlan-l2bdbase-linux-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4vxlan-l2bdbase
