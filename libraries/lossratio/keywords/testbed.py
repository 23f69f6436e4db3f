"""Keywords that reserve a testbed, set it up and restore it."""

from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from robot.api import logger
from robot.api.types import Secret
from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import LossRatioError
from lossratio.keywords.arguments import credentials, seconds, typed_keyword, with_option_values
from lossratio.keywords.groups import Keywords
from lossratio.keywords.live_view import say
from lossratio.measurements import MEMORY_REST, MEMORY_SECONDS
from lossratio.topology import Topology, load_topology

_NOT_ASKED = "local"
"""The topology of the resource file, which a run does not ask for. ``lossratio run`` sets the variable to a path."""


class TestbedKeywords(Keywords):
    """Set-up, tear-down, and reservations that outlast them."""

    __test__ = False

    @typed_keyword()
    def reserve_testbed(
        self,
        topology: Path,
        *,
        wait: timedelta | None = None,
        purpose: str = "",
        password: Secret | None = None,
        passphrase: Secret | None = None,
    ) -> None:
        """Reserves a testbed until `Release Testbed`, for all suites that set it up in the meantime.

        `Set Up Testbed` alone reserves the testbed only while it is set up, and fails if somebody else has reserved it.
        This keyword waits in a fair queue, and keeps the testbed from one set-up to the next. Call it in the set-up of
        a suite, or in ``__init__.robot`` for a whole directory. You do not need it with ``lossratio run``, which
        reserves the testbed for the whole run.

        | =Argument= | =What it is= |
        | ``topology`` | The topology file. |
        | ``wait`` | How long to wait for the testbed. Default: not at all. |
        | ``purpose`` | The reason, which others see while they wait for the testbed. |
        | ``password``, ``passphrase`` | As for `Set Up Testbed`. |

        | Suite Setup       `Reserve Testbed`    ${TOPOLOGY}    wait=2 h    purpose=nightly
        | Suite Teardown    `Release Testbed`
        """
        self.session.check_settings()
        if self.session.reservation is not None:
            raise LossRatioError(
                "A testbed is already reserved in this suite. Call the keyword 'Release Testbed' before you reserve "
                "another one."
            )
        from lossratio.testbed import candidate, reserved

        wanted = candidate(topology, load_topology(topology), purpose=purpose)
        with ExitStack() as undo:
            undo.enter_context(
                reserved([wanted], seconds(wait) or 0.0, credentials(password, passphrase))
            )
            self.session.reservation = undo.pop_all()

    @typed_keyword()
    def release_testbed(self) -> None:
        """Releases the testbed that `Reserve Testbed` reserved in this suite; does nothing if there is none."""
        reservation = self.session.reservation
        self.session.reservation = None
        if reservation is not None:
            reservation.close()

    @with_option_values
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
        **options: object,
    ) -> None:
        """Logs in to the nodes of a topology, sets up the devices under test, and prepares the traffic generator.

        | =Argument=     | =What it is= |
        | ``topology``   | The topology file. |
        | ``dut``        | The kind of device that each DUT becomes, e.g. ``linux_bridge`` or ``linux_router``. Default: the DUTs stay as they are. |
        | ``duts``       | How many DUTs the path goes through, in the order of the file; 0 is a cable from the generator to itself. Default: all of them. |
        | ``nic``        | The NIC model that the DUTs' ports on the path must have, e.g. ``Intel-E810CQ``. Default: the first free link, on any NIC. |
        | ``links``      | How many parallel paths the traffic takes at once. A load is per transmitting interface of each path. |
        | ``password``   | The password for nodes where a key is not enough, as a secret variable of Robot Framework. Default: the environment variable ``LOSSRATIO_PASSWORD_<NODE>`` or ``LOSSRATIO_PASSWORD``, if there is one. |
        | ``passphrase`` | The passphrase of the private key, also as a secret variable. Default: ``LOSSRATIO_PASSPHRASE``. |
        | ``options``    | The device's options by name, e.g. ``police=50 kfps``. The built-in kinds have OPTIONS. If the kind does not have the option, the error names the options of the kind. |

        Everything is checked before anything is changed, and a set-up that fails half-way is undone. If the testbed has
        too few cores, DUTs or links, or no such NIC, the tests are skipped, with the reason. If a local testbed is not
        up, it is started, and `Tear Down Testbed` removes it. On a simulated testbed, a device with a known truth (such
        as the rate of a policer) is replaced by a model with the same truth, and any other device by the model in the
        topology file.

        If the DUTs have cores of their own, tests get FD.io CSIT's tag for their threads and cores, e.g. ``2t1c``.

        | Suite Setup       `Set Up Testbed`    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
        | Suite Teardown    `Tear Down Testbed`
        """  # noqa: E501 (a row of a table cannot be broken)
        # Imported here, because a dry run and a list of keywords need no testbed.
        from lossratio.report import RunReport
        from lossratio.testbed import open_testbed, threads_and_cores

        # The page also shows a set-up that fails.
        RunReport.require_page()
        self.session.check_settings()
        if self.session.testbed is not None:
            raise LossRatioError(
                "A testbed is already set up in this suite. Call the keyword 'Tear Down Testbed' before another "
                "set-up."
            )

        _warn_of_another(load_topology(topology), topology)
        self.session.testbed = open_testbed(
            topology,
            dut=dut,
            options=options,
            credentials=credentials(password, passphrase),
            duts=duts,
            nic=nic,
            links=links,
        )
        if any(not dut.is_managed for dut in self.session.testbed.duts):
            say(
                "Each measurement first tests whether the black box remembers trials. This takes about "
                f"{MEMORY_SECONDS:g} s, and up to three times as long if it remembers them. It can find a memory "
                f"of at most {MEMORY_REST:g} s."
            )

        tags = threads_and_cores(self.session.testbed.duts)
        if tags:
            BuiltIn().set_tags(*tags)

    @typed_keyword()
    def tear_down_testbed(self) -> None:
        """Stops all traffic, restores the devices, and closes all connections.

        If nothing is set up, it does nothing. So you can safely call it twice, and after a set-up that failed.
        """
        testbed = self.session.testbed
        self.session.testbed = None
        traffic = self.session.traffic
        self.session.traffic = None
        # Latency and telemetry after this search, at its loads and in its result, would be measured on other devices.
        self.session.last_search = None
        with ExitStack() as undo:
            if testbed is not None:
                undo.callback(testbed.close)
            if traffic is not None:
                undo.callback(traffic.close)


def _warn_of_another(topology: Topology, file: Path) -> None:
    """Warns if the run was asked for another topology than the one that the suite sets up."""
    given = BuiltIn().get_variable_value("${TOPOLOGY}", _NOT_ASKED)
    if given != _NOT_ASKED and load_topology(given) != topology:
        logger.warn(
            f"This suite sets up {file}, although the run was asked for {given} (--topology, or the variable "
            "TOPOLOGY). To measure there, write ${TOPOLOGY} in the suite."
        )
