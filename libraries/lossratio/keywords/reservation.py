"""Keywords that reserve a testbed among everybody who shares it."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from robot.api.types import Secret

from lossratio.errors import LossRatioError
from lossratio.keywords.arguments import credentials, seconds, typed_keyword
from lossratio.keywords.session import Keywords
from lossratio.testbed import candidate, reserved
from lossratio.topology import load_topology


class ReservationKeywords(Keywords):
    """Reservation for longer than a set-up."""

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
        """Reserves a testbed until `Release Testbed`, for all suites that set it up meanwhile.

        `Set Up Testbed` reserves it by itself for as long as it is set up, and fails if it is somebody else's. This
        keyword waits for it, in a fair queue, and keeps it from one set-up to the next: call it in the set-up of a
        suite, or in an ``__init__.robot`` for a whole directory. ``lossratio run`` does it by itself.

        | =Argument= | =What it is= |
        | ``topology`` | The topology file. |
        | ``wait`` | How long to wait for the testbed at most. Left out: not at all. |
        | ``purpose`` | What it is for, as others see it who wait for it. |
        | ``password``, ``passphrase`` | As for `Set Up Testbed`. |

        | Suite Setup       `Reserve Testbed`    ${TOPOLOGY}    wait=2 h    purpose=nightly
        | Suite Teardown    `Release Testbed`
        """
        if self.session.reservation is not None:
            raise LossRatioError(
                "A testbed is reserved already in this suite. Call the keyword 'Release Testbed' before another one."
            )
        wanted = candidate(topology, load_topology(topology), purpose=purpose)
        with ExitStack() as undo:
            undo.enter_context(reserved([wanted], seconds(wait) or 0.0, credentials(password, passphrase)))
            self.session.reservation = undo.pop_all()

    @typed_keyword()
    def release_testbed(self) -> None:
        """Gives back what `Reserve Testbed` reserved in this suite; where nothing is reserved it does nothing."""
        reservation, self.session.reservation = self.session.reservation, None
        if reservation is not None:
            reservation.close()
