*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4, between the DUTs ESP. [Cfg] IPsec tunnels to interfaces.
...               [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 4303.
Metadata          Tunnels    4 1 40 1000 10000
Metadata          Algorithms aes256gcm    aes aes_256_gcm
Metadata          Algorithms aes128gcm    aes aes_128_gcm
Metadata          Algorithms aes128cbc-hmac512sha    aes aes_128_cbc hmac hmac_sha_512
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4
...                   ipsec=${TUNNELS}    ipsec_algorithms=${ALGORITHMS}
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    ip4fwd    scale    ipsec    ipsecsw    ipsecint    tnl_${TUNNELS}
...               ${FRAME_SIZE}    ${CORES}c    ethip4ipsec${TUNNELS}tnlsw-ip4base-int-${ALGORITHMS}    # robocop: fmt: off


*** Variables ***
${TUNNELS}       4
${ALGORITHMS}    aes256gcm


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlsw-ip4base-int-${ALGORITHMS}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlsw-ip4base-int-${ALGORITHMS}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlsw-ip4base-int-${ALGORITHMS}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
