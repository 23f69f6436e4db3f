*** Settings ***
Documentation    Testbeds that cannot be set up or used: each gives one clear error, and leaves nothing behind.

Resource         acceptance.resource

Test Teardown    Tear Down Testbed

Test Tags        faults


*** Test Cases ***
Missing Topology
    [Documentation]    The error names the file.
    Run Keyword And Expect Error    TopologyError: Cannot read missing.yaml: No such file or directory. Check the path*
    ...    Set Up Testbed    missing.yaml

Wrong Topology
    [Documentation]    The error names file, line and field.
    ${text}    Get File    ${SIMULATED}
    VAR    ${file}    ${OUTPUT_DIR}/wrong.yaml
    Create File    ${file}    ${text.replace("max_rate", "maximum")}
    Run Keyword And Expect Error    TopologyError: ${file}:*: nodes.TG.generator.*maximum: unknown field*
    ...    Set Up Testbed    ${file}

Unknown Device
    [Documentation]    The error names the kinds there are.
    Run Keyword And Expect Error
    ...    DutError: There is no kind of DUT 'linux_brigde'. Choose one of these:*linux_bridge*
    ...    Set Up Testbed
    ...    ${SIMULATED}
    ...    dut=linux_brigde

Unknown Option Of A Device
    [Documentation]    The error names the options there are.
    Run Keyword And Expect Error    DutError: *it has no option 'polise'. Its options are:*police*
    ...    Set Up Testbed    ${SIMULATED}    dut=linux_bridge    polise=50 kfps

Set-Up That Fails
    [Documentation]    It is undone, so that the next one succeeds.
    Skip Without A Local Testbed
    Run Keyword And Expect Error    DutError: *cannot be reset before each trial*
    ...    Set Up Testbed    ${LOCAL}    dut=black_box    reset=True
    Set Up Testbed    ${LOCAL}    dut=linux_bridge
    Measure MRR    64B    trials=1    max_load=10 kpps

Black Hole
    [Documentation]    Devices that nobody has set up forward nothing; that is found before the search.
    Skip Without A Local Testbed
    Set Up Testbed    ${LOCAL}
    Run Keyword And Expect Error    DeadDutError: *port0>port1: DUT1 receives * frames and forwards none*black hole*
    ...    Find NDR And PDR    64B
