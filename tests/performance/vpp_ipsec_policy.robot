*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4, between the DUTs ESP. [Cfg] IPsec tunnels that policies choose.
...               [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 4301.
Metadata          Tunnels    4 1000 10000
Metadata          Lookup    policy policy-flow-cache policy-fastpath
Metadata          Lookup policy-flow-cache    spd_flow_cache
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4
...                   ipsec=${TUNNELS}    ipsec_lookup=${LOOKUP}
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    ip4fwd    scale    ipsec    ipsecsw    ipsectun    aes    aes_256_gcm
...               tnl_${TUNNELS}    ${FRAME_SIZE}    ${CORES}c    ethip4ipsec${TUNNELS}tnlsw-ip4base-${LOOKUP}-aes256gcm    # robocop: fmt: off


*** Variables ***
${TUNNELS}    4
${LOOKUP}     policy


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlsw-ip4base-${LOOKUP}-aes256gcm-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlsw-ip4base-${LOOKUP}-aes256gcm-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlsw-ip4base-${LOOKUP}-aes256gcm-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
