*** Settings ***
Documentation    The self-test of the tester over a cable, and what becomes of its limit.

Library          String
Resource         acceptance.resource

Suite Setup      Skip Without A Local Testbed
Test Teardown    Tear Down Testbed

Test Tags        tester


*** Variables ***
${CABLE}     ${CURDIR}/../../topologies/local-cable.yaml
${RECORD}    ${OUTPUT_DIR}/local.self-test.yaml
${TESTED}    ${OUTPUT_DIR}/tested.yaml


*** Test Cases ***
Over A Cable The Tester's Limit Is Found And Recorded
    [Documentation]    At a load that any machine can send, that load is the limit, or a little less on a busy one.
    Record The Limit

A Search Goes Up To The Limit And Warns Above It
    [Documentation]    The topology of the same tester names the record.
    Have A Record Of The Limit
    ${text}    Get File    ${LOCAL}
    ${text}    Replace String    ${text}    max_rate:    self_test: local.self-test.yaml, max_rate:    count=1
    Create File    ${TESTED}    ${text}
    Set Up Testbed    ${TESTED}    dut=linux_bridge
    ${result}    Measure MRR    64B    trials=1    trial_duration=200 ms
    Should Be True    9000 <= $result.max_load.rate.per_interface_fps <= 10000
    ${result}    Measure MRR    64B    trials=1    trial_duration=200 ms    max_load=20 kpps
    Should Be True    any("self-test" in remark.text for remark in $result.remarks)    ${result.remarks}

With A Device In Between There Is No Self-Test
    [Documentation]    What would be found is the device's limit.
    Set Up Testbed    ${LOCAL}    dut=linux_bridge
    Run Keyword And Expect Error    *DUT1 is between the TG's ports*    Find Tester Limit    64B


*** Keywords ***
Have A Record Of The Limit
    [Documentation]    That of the first test, or one of its own if this test runs alone.
    ${is_there}    Run Keyword And Return Status    File Should Exist    ${RECORD}
    IF    not $is_there    Record The Limit
    Tear Down Testbed

Record The Limit
    [Documentation]    Over a cable.
    ${topology}    Making Up For Stalls    ${CABLE}
    Set Up Testbed    ${topology}
    Wait Until Keyword Succeeds    ${ATTEMPTS}    5 s    Limit Is Found And Recorded

Limit Is Found And Recorded
    [Documentation]    It is what was asked for, or a little less.
    ${test}    Find Tester Limit    64B    max_load=10 kpps    record=${RECORD}
    Should Be True    9000 <= $test.limit.max_load <= 10000    ${test}
    File Should Exist    ${RECORD}
