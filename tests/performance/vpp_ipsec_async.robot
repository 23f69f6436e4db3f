*** Settings ***
Documentation     [Top] TG-DUT1-DUT2-TG. [Enc] Eth-IPv4, between the DUTs ESP. [Cfg] IPsec with one worker that
...               forwards. [Ver] NDR and PDR by RFC 9971, MRR at maximum load, critical load by counts. [Ref] RFC
...               4303.
Metadata          Algorithms aes256gcm    aes aes_256_gcm
Metadata          Algorithms aes128gcm    aes aes_128_gcm
Metadata          Algorithms aes128cbc-hmac512sha    aes aes_128_cbc hmac hmac_sha_512
Metadata          Tunnels 1    base
Metadata          Tunnels 2    scale
Metadata          Tunnels 4    scale
Metadata          Tunnels 8    scale
Metadata          Cores    2 3 4

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=2    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4
...                   ipsec=${TUNNELS}    ipsec_algorithms=${ALGORITHMS}    ipsec_async=True    queues=1
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    ip4fwd    ipsec    ipsecsw    ipsecint    tnl_${TUNNELS}    async    scheduler
...               ${FRAME_SIZE}    ${CORES}c    ethip4ipsec${TUNNELS}tnlswasync-scheduler-ip4base-int-${ALGORITHMS}    # robocop: fmt: off


*** Variables ***
${TUNNELS}       1
${ALGORITHMS}    aes256gcm


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlswasync-scheduler-ip4base-int-${ALGORITHMS}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlswasync-scheduler-ip4base-int-${ALGORITHMS}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
${FRAME_SIZE}-${CORES}c-ethip4ipsec${TUNNELS}tnlswasync-scheduler-ip4base-int-${ALGORITHMS}-soak
    [Tags]    soak
    [Template]    Find Critical Load
    ${FRAME_SIZE}    profile=ethip4-ip4dst${TUNNELS}
