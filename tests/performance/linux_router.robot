*** Settings ***
Documentation     [Top] TG-DUT1-TG. [Enc] Eth-IPv4-UDP. [Cfg] Linux IPv4 router, one way, every frame walks 300 rules
...               in a thread on another CPU. [Ver] NDR and PDR by RFC 9971, MRR at maximum load. [Ref] RFC 2544.

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    dut=linux_router    rules=300
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         2_node_single_link_topo    perftest    ethip4    ip4fwd    base    ethip4-ip4base    1c


*** Test Cases ***
64B-1c-ethip4-ip4base-ndrpdr
    [Tags]    ndrpdr    64b
    frame_size=64B    profile=ethip4-udp    bidirectional=False
1518B-1c-ethip4-ip4base-ndrpdr
    [Tags]    ndrpdr    1518b
    frame_size=1518B    profile=ethip4-udp    bidirectional=False
IMIX-1c-ethip4-ip4base-ndrpdr
    [Tags]    ndrpdr    imix
    frame_size=IMIX_v4_1    profile=ethip4-udp    bidirectional=False
64B-1c-ethip4-ip4base-mrr
    [Tags]    mrr    64b
    [Template]    Measure MRR
    frame_size=64B    profile=ethip4-udp    bidirectional=False
1518B-1c-ethip4-ip4base-mrr
    [Tags]    mrr    1518b
    [Template]    Measure MRR
    frame_size=1518B    profile=ethip4-udp    bidirectional=False
IMIX-1c-ethip4-ip4base-mrr
    [Tags]    mrr    imix
    [Template]    Measure MRR
    frame_size=IMIX_v4_1    profile=ethip4-udp    bidirectional=False
