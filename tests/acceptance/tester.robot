*** Settings ***
Documentation    The self-test of the tester over a cable.

Resource         acceptance.resource

Suite Setup      Skip Without A Local Testbed
Test Teardown    Tear Down Testbed

Test Tags        tester


*** Variables ***
${CABLE}    ${CURDIR}/../../topologies/local-cable.yaml


*** Test Cases ***
Over A Cable The Tester's Limit Is Found
    [Documentation]    At a load that any machine can send, that load is the limit, or a little less on a busy one.
    ${topology}    Making Up For Stalls    ${CABLE}
    Set Up Testbed    ${topology}
    Wait Until Keyword Succeeds    ${ATTEMPTS}    5 s    Limit Is Found

With A Device In Between There Is No Self-Test
    [Documentation]    What would be found is the device's limit.
    Set Up Testbed    ${LOCAL}    dut=linux_bridge
    Run Keyword And Expect Error    *DUT1 is between the TG's ports*    Find Tester Limit    64B


*** Keywords ***
Limit Is Found
    [Documentation]    It is what was asked for, or a little less.
    ${test}    Find Tester Limit    64B    max_load=10 kpps
    Should Be True    9000 <= $test.max_load <= 10000    ${test}
