*** Settings ***
Documentation     Bad input and faults: each gives one clear error, before anything is measured.

Resource          acceptance.resource

Suite Setup       Set Up Testbed    ${SIMULATED}    dut=linux_bridge    police=50 kfps
Suite Teardown    Tear Down Testbed
Test Template     Should Fail With

Test Tags         errors


*** Test Cases ***
Unknown Goal
    *There is no search goal 'NRD'. The goals are NDR, PDR, RFC2544, TST009*
    ...    Find Conditional Throughput    NRD    frame_size=64B
No Goal
    *A search needs at least one search goal, such as NDR.
    ...    Find Conditional Throughput    frame_size=64B
Goal Value Out Of Range
    *loss_ratio must be at least 0 and below 1, not 1.5*
    ...    Find Conditional Throughput    {"loss_ratio": "150 %"}    frame_size=64B
Unknown Field Of A Goal
    *there is no field 'loss'; the fields are loss_ratio*
    ...    Find Conditional Throughput    {"loss": 0}    frame_size=64B
Frame Rate That Does Not Parse
    *'fast' is not a frame rate; write it like '10 kfps'.
    ...    Find NDR And PDR    64B    max_load=fast
Frame Size That Does Not Parse
    *'6x4' is not a size in bytes; write it like '64B'. Or name a mix of sizes, e.g. IMIX_v4_1.
    ...    Find NDR And PDR    6x4
Mix Of Sizes That There Is Not
    *'IMIX_v9' is neither a size like 64 or '64B' nor a mix of sizes. Known mixes: IMIX_v4_1.
    ...    Find NDR And PDR    IMIX_v9
Frame Size That Is No Ethernet Frame
    *20 is not between 64 and 9000 bytes.
    ...    Find NDR And PDR    20B
Frame Size That The Headers Do Not Fit In
    *frames of 90 bytes are too small: these headers need 96 bytes.
    ...    Find NDR And PDR    90B    ethip4vxlan-ip4base
Maximum Load Below Minimum Load
    *The minimum load (20.000 kfps) is above the maximum load (10.000 kfps).*
    ...    Find NDR And PDR    64B    min_load=20 kpps    max_load=10 kpps
Unknown Traffic Profile
    *There is no traffic profile 'ethip5'. Similar names are*ethip4-udp*
    ...    Find NDR And PDR    64B    profile=ethip5
Testbed Set Up Twice
    *A testbed is already set up in this suite.*
    ...    Set Up Testbed    ${SIMULATED}
Demand Before A Search
    *Nothing has been measured in this suite yet.*
    ...    Throughput Should Be At Least    1 kpps


*** Keywords ***
Should Fail With
    [Documentation]    Expects an error. A dry run finds wrong arguments by itself, so there is nothing to run in one.
    [Tags]    robot:no-dry-run
    [Arguments]    ${error}    ${keyword}    @{arguments}    &{named}
    Run Keyword And Expect Error    ${error}    ${keyword}    @{arguments}    &{named}
