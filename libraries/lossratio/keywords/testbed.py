"""Keywords that set up a testbed and put it back."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from robot.api.types import Secret
from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import LossRatioError
from lossratio.keywords.arguments import credentials, typed_keyword
from lossratio.keywords.session import Keywords
from lossratio.testbed import open_testbed, threads_and_cores


class TestbedKeywords(Keywords):
    """Set-up and tear-down."""

    __test__ = False

    @typed_keyword()
    def set_up_testbed(
        self,
        topology: Path,
        *,
        dut: str | None = None,
        duts: int | None = None,
        nic: str | None = None,
        links: int = 1,
        password: Secret | None = None,
        passphrase: Secret | None = None,
        **options: Any,
    ) -> None:
        """Logs in on the nodes of a topology, sets up the devices under test, and gets the traffic generator ready.

        | =Argument=     | =What it is= |
        | ``topology``   | The topology file. |
        | ``dut``        | The kind of device that each DUT becomes, e.g. ``linux_bridge`` or ``linux_router``. Left out: the DUTs stay as they are, set up by others. |
        | ``duts``       | Through how many DUTs the path goes, in the order of the file; 0 is a cable from the generator to itself. Left out: through all. |
        | ``nic``        | The NIC model that the DUTs' ports on the path must have, e.g. ``Intel-E810CQ``. Left out: the first link that is free, whatever it is on. |
        | ``links``      | How many parallel paths the traffic takes at once; a load is that of each of their interfaces. |
        | ``password``   | What to log in with on nodes where keys are not enough, as a secret variable of Robot Framework. Left out: the environment variable ``LOSSRATIO_PASSWORD_<NODE>`` or ``LOSSRATIO_PASSWORD``, if there is one. |
        | ``passphrase`` | What the private key is encrypted with, likewise. Left out: ``LOSSRATIO_PASSPHRASE``. |
        | ``options``    | The device's options by name, e.g. ``police=50 kfps``. One that this kind does not have is an error that names those it has. |

        Everything is checked before anything is changed, and a set-up that fails half-way is undone. A local testbed
        that is not up is brought up, and taken down again by `Tear Down Testbed`. On a simulated testbed, a device with
        a known truth (such as a policer's rate) is replaced by a model with the same truth, and any other one by the
        model in the topology file.

        Tests get the tag of FD.io CSIT for the DUTs' threads and cores, e.g. ``2t1c``, where these have cores of their own.

        | Suite Setup       `Set Up Testbed`    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
        | Suite Teardown    `Tear Down Testbed`
        """  # noqa: E501 (a row of a table cannot be broken)
        if self.session.testbed is not None:
            raise LossRatioError(
                "A testbed is set up already in this suite. Call the keyword 'Tear Down Testbed' before another set-up."
            )
        self.session.testbed = open_testbed(
            topology,
            dut=dut,
            options=options,
            credentials=credentials(password, passphrase),
            duts=duts,
            nic=nic,
            links=links,
        )
        tags = threads_and_cores(self.session.testbed.duts)
        if tags:
            BuiltIn().set_tags(*tags)

    @typed_keyword()
    def tear_down_testbed(self) -> None:
        """Stops all traffic, puts the devices back to how they were, and closes all connections.

        Where nothing is set up it does nothing, so it is safe after a set-up that failed, and when called twice.
        """
        testbed, self.session.testbed = self.session.testbed, None
        traffic, self.session.traffic = self.session.traffic, None
        # What is measured after it, at its loads and into its result, would be of other devices.
        self.session.last_search = None
        with ExitStack() as undo:
            if testbed is not None:
                undo.callback(testbed.close)
            if traffic is not None:
                undo.callback(traffic.close)
