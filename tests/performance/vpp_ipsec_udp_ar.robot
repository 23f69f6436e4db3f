*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4, between the DUTs UDP-ESP. [Cfg] IPsec in UDP, no replays.
...               [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC 3948.
Metadata          Tunnels    10000
Metadata          Algorithms aes256gcm    aes aes_256_gcm
Metadata          Algorithms aes128gcm    aes aes_128_gcm
Metadata          Algorithms aes256nullgmac    aes aes_256_null_gmac
Metadata          Algorithms aes128nullgmac    aes aes_128_null_gmac
Metadata          Algorithms none-hmac96sha    hmac_sha_96
Metadata          Algorithms aes256cbc-hmac96sha    aes aes_256_cbc hmac_sha_96
Metadata          Algorithms aes256cbc-hmac256sha    aes aes_256_cbc hmac_sha_256
Metadata          Algorithms aes128cbc-hmac96sha    aes aes_128_cbc hmac_sha_96
Metadata          Algorithms aes128cbc-hmac256sha    aes aes_128_cbc hmac_sha_256
Metadata          Algorithms aes128ctr-hmac96sha    aes aes_128_ctr hmac_sha_96
Metadata          Algorithms aes128ctr-hmac256sha    aes aes_128_ctr hmac_sha_256
Metadata          Differs From CSIT    overhead
Metadata          Cores    1 2 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4
...                   ipsec=${TUNNELS}    ipsec_algorithms=${ALGORITHMS}    ipsec_udp=True    ipsec_anti_replay=True
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    ip4fwd    scale    ipsec    ipsecsw    ipsecint
...               tnl_${TUNNELS}    udp_encap    anti_replay
...               ${FRAME_SIZE}    ${CORES}c    ethip4ipsec${TUNNELS}tnlsw-udp-ar-ip4base-int-${ALGORITHMS}    # robocop: fmt: off


*** Variables ***
${TUNNELS}       10000
${ALGORITHMS}    aes256gcm


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlsw-udp-ar-ip4base-int-${ALGORITHMS}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlsw-udp-ar-ip4base-int-${ALGORITHMS}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlsw-udp-ar-ip4base-int-${ALGORITHMS}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
