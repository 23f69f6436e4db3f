*** Settings ***
Documentation     [Top] TG-DUTs-TG. [Enc] Eth-IPv4-UDP. [Cfg] VPP IPv4 router with deterministic NAT44 (det44) and
...               1,024 hosts on each address. [Ver] NDR and PDR, RFC 9971 (MLRsearch), and MRR, both ways: return
...               traffic goes to all ports of the NAT, over connections that are established and counted before each
...               trial. [Ref] RFC 9693.
Metadata          Cores    1 2 4
Metadata          Frame Sizes    64B 1518B IMIX
Metadata          Scale    h1024-p63-s64512 h16384-p63-s1032192 h65536-p63-s4128758

Resource          lossratio/resources/performance.resource

Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}
...                   dut=vpp    cores=${CORES}    forwarding=ip4
...                   det44_hosts=${{'${SCALE}'[1:].partition('-')[0]}}
...                   det44_addresses=${{math.ceil(int('${SCALE}'[1:].partition('-')[0]) / 1024)}}
Suite Teardown    Tear Down Testbed
Test Template     Find NDR And PDR

Test Tags         perftest    vpp    eth    ip4fwd    feature    nat44    nat44_deterministic    scale    udp
...               udp_bidir    ethip4udp-nat44det-${SCALE}
...               hosts_${{'${SCALE}'[1:].partition('-')[0]}}    ${FRAME_SIZE}    ${CORES}c    # robocop: fmt: off


*** Test Cases ***
${FRAME_SIZE}-${CORES}c-ethip4udp-nat44det-${SCALE}-ndrpdr
    [Tags]    ndrpdr
    ${FRAME_SIZE}    profile=ethip4-udp-${SCALE.partition('-')[0]}-p63-det44
${FRAME_SIZE}-${CORES}c-ethip4udp-nat44det-${SCALE}-mrr
    [Tags]    mrr
    [Template]    Measure MRR
    ${FRAME_SIZE}    profile=ethip4-udp-${SCALE.partition('-')[0]}-p63-det44
