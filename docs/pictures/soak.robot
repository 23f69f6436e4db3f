*** Settings ***
Documentation       The soak test on the first page of the documentation: `make pictures` draws docs/pictures/soak.svg.

Library             LossRatio

Suite Setup         Set Up Testbed    ${CURDIR}/testbed.yaml
Suite Teardown      Tear Down Testbed


*** Test Cases ***
64B Lose One Frame In Ten Million At This Load
    Find Critical Load    64B    timeout=300 s
