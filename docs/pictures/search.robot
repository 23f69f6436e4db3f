*** Settings ***
Documentation       The search that the README shows: `make pictures` runs it and draws docs/pictures/search.svg.

Library             LossRatio

Suite Setup         Set Up Testbed    ${CURDIR}/testbed.yaml
Suite Teardown      Tear Down Testbed


*** Test Cases ***
64B Is Forwarded At These Rates
    Find NDR And PDR    64B
