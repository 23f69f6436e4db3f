"""Answers of a host that cannot be read are errors with the host's name."""

import pytest

from lossratio.errors import NodeError
from lossratio.nodes import CommandResult
from lossratio.testbed import hosts


class Session:
    """A session whose commands all have the same answer."""

    def __init__(self, answer):
        self._answer = answer

    def run(self, *command, check=True):
        return CommandResult(command, 0, self._answer, "")


@pytest.mark.parametrize("answer", ["", "[]", "[{}]", "local 10.0.0.1"])
def test_an_answer_without_a_route_is_an_error_with_the_host_and_the_answer(answer):
    host = hosts.Host("client", {})
    with pytest.raises(NodeError, match="Node client: the answer of 'ip' cannot be read: ") as caught:
        hosts._port(host, Session(answer), "10.0.0.1", None)
    assert repr(answer) in str(caught.value)
