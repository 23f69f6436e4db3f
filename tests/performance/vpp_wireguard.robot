*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4, between the DUTs UDP-WireGuard. [Cfg] WireGuard tunnels.
...               [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] WireGuard.
Metadata          Tunnels    1 2 4 8 100 1000
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4    wireguard=${TUNNELS}
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    ip4fwd    wireguard    tnl_${TUNNELS}
...               ${FRAME_SIZE}    ${CORES}c    ethip4udpwireguard${TUNNELS}tnlsw-ip4base    # robocop: fmt: off


*** Variables ***
${TUNNELS}    1


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udpwireguard${TUNNELS}tnlsw-ip4base-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4net${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4udpwireguard${TUNNELS}tnlsw-ip4base-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4net${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4udpwireguard${TUNNELS}tnlsw-ip4base-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4net${TUNNELS}
