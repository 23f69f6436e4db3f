"""The Robot Framework library: all groups of keywords, with one session for each suite; and reports on demand."""

from pathlib import Path

from robot.api import logger
from robot.api.deco import keyword, library

from lossratio.errors import ReportError
from lossratio.keywords.arguments import CONVERTERS, FormatName
from lossratio.keywords.devices import DeviceKeywords
from lossratio.keywords.live_view import say
from lossratio.keywords.measurements import with_keywords_of_kinds
from lossratio.keywords.rfc2544 import Rfc2544Keywords
from lossratio.keywords.session import Doubts, Session
from lossratio.keywords.testbed import TestbedKeywords
from lossratio.keywords.tester import TesterKeywords
from lossratio.keywords.throughput import ThroughputKeywords
from lossratio.measurements.throughput import NdrPdrGoals
from lossratio.report import PAGE, write_reports
from lossratio.version import __version__


@library(scope="SUITE", version=__version__, converters=dict(CONVERTERS), doc_format="ROBOT")
@with_keywords_of_kinds
class LossRatio(
    TestbedKeywords, ThroughputKeywords, Rfc2544Keywords, TesterKeywords, DeviceKeywords
):
    """Keywords that benchmark the data plane throughput of software networking: NDR, PDR, any RFC 9971 goal, and MRR.

    A suite says what is measured; the topology file says where:
    | ***** Settings *****
    | Resource          lossratio/resources/performance.resource
    | Suite Setup       `Set Up Testbed`    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
    | Suite Teardown    `Tear Down Testbed`
    | Test Template     `Find NDR And PDR`
    |
    | ***** Test Cases *****
    | 64B-1c-eth-l2bdbase-ndrpdr
    |     frame_size=64B    profile=ethip4-udp

    The resource file imports this library, and passes on the variables that change from run to run:
    ``TOPOLOGY``, ``GOALS`` (``csit``, ``csit-half``, ``quick``, ``sequential`` or others), ``LATENCY`` and ``TELEMETRY`` (``on``, as it is there, or ``off``), ``DOUBTS`` (``warn``, as it is there, or ``fail``) and ``RESUME``.

    = Arguments of measurements =

    | =Argument=        | =What it is= |
    | ``frame_size``    | Bytes with frame check sequence (``64B``), or a mix of sizes: ``IMIX_v4_1``, or one of the profile's own. |
    | ``profile``       | Name of a traffic profile that comes with the library (``ethip4-udp``, ``ethip6-udp``, ``dot1q-ip4base`` ...), or the path of a file of your own. |
    | ``bidirectional`` | Whether both ports transmit. Left out: as the profile says. |
    | ``max_load``      | The largest load, per transmitting interface (where directions differ: of the one that sends most). Left out: the smallest of what the generator, the links and the NICs can do, as far as the topology file says. |
    | ``min_load``      | The smallest load, likewise. Left out: 9001 fps as in FD.io CSIT; if that is above the maximum load, a tenth of this. |
    | ``timeout``       | After this much time no trial begins; the result is what is known then, and irregular. |
    | ``warm_up``       | Length of a first trial at maximum load whose result is discarded. Left out: there is none. |
    | ``warm_up_profile`` | Traffic profile of that trial, by name or file. Left out: the measurement's profile. |
    | ``ramp``          | Time before every trial in which the load grows from nothing to the trial's load; its frames are not counted. Left out: trials begin at their load. |
    | ``rest``          | Least time without traffic before every trial, for a device that remembers the last one; it is part of the trial's time, and of ``timeout``. Left out: what the device's kind needs, which the result states. |
    | ``integrity``     | What happens if frames come back more than once, changed, truncated, padded or elsewhere. They never count as received. ``doubt`` (left out: this): the result carries the doubt, with its size. ``fail``: the test fails, as a fault of the device. ``off``: frames are counted and not looked at, for a device that changes them on purpose, such as one that translates addresses. |
    | ``doubts``        | What doubts about the result mean. ``warn``: each is a warning on the console and in the log, and a tag of the test, such as ``doubt-late-frames``. ``fail``: the test fails, too. Left out: what the library was imported with. |
    | ``hints``         | Directory of an earlier run, a folder of such directories, or a journal: a search starts where the last searches of the same test found the bounds. None of their trials is evidence. Left out: there are no hints. |
    | ``memory_rest``   | Time without traffic before one more short trial of a search, above its bounds: a SUT that passes it is asked further, also right after a loss, and the result may have the doubt *memory of the device*. ``0 s``: no such trial. Left out: 15 s at the end of a search that takes four times as long, once in a run for each device (a black box: always), unless trials after a long time without loss show the same. With ``hints``, the first trial asks it, or whether the SUT passes less after a rest, in turns. |
    | ``early_verdict`` | ``on``: a trial of a search ends as soon as it is certain to lose more than every goal allows; it counts as the full trial. Faster, but no goal complies with RFC 2544 unconditionally then. ``off``: trials take their whole duration. Left out: as the file of goals says, else ``off``. |
    | ``end_at_coin`` | ``True``: a search gives a goal up where trials pass and fail by chance over more than its width, and the result is that zone ("a coin from 515 to 570 kfps") in place of bounds; it is irregular, as RFC 9971 has no such end. Left out: ``False``. |
    | ``must_find``     | Whether the test of a search fails if no load meets a goal, so that there is no number. Left out: yes; ``False``: the result is irregular, and the test passes. |
    | ``resume``        | Directory of an earlier run. If the same measurement of the same test was interrupted there, it is continued, and nothing is measured twice. |

    Loads are per transmitting interface; results give aggregates, too, with the factor between them.

    = What a measurement leaves behind =

    The test's message has the result in words; an irregular one is marked, with the reason. The log has the picture of the
    search. In the output directory, ``trials`` has a journal of every trial, which grows as they are measured, and
    ``results`` the result of every test as JSON; ``lossratio.html`` shows them all, and is written at the end of the
    run, or by `Write Report`. A measurement that cannot be trusted is an error, never a number.
    """  # noqa: E501 (a row of a table cannot be broken)

    def __init__(
        self,
        goals: str = NdrPdrGoals.csit.name,
        resume: Path | None = None,
        latency: bool = False,
        telemetry: bool = False,
        doubts: str = Doubts.WARN.value,
    ) -> None:
        """Sets what is the same for all measurements of a suite.

        ``goals`` is what `Find NDR And PDR` searches with: ``csit`` (this if left out), ``quick``, presets, or a file
        of goals. ``resume`` is the directory of an earlier run whose interrupted measurements are continued. With
        ``latency`` it also measures latency, and with ``telemetry`` it collects the devices' telemetry at PDR, as FD.io
        CSIT's tests do. ``doubts`` is what doubts about results mean: ``warn``, or ``fail``.
        """
        super().__init__(
            Session(goals, resume, doubts, measures_latency=latency, collects_telemetry=telemetry)
        )
        for problem in self.unusable:
            logger.warn(f"{problem} So it has no keyword.")

    @keyword
    def write_report(self, *formats: FormatName) -> None:
        """Writes reports of what the run has measured so far into its output directory.

        ``formats`` are ``html`` (the page ``lossratio.html``; the default), ``json``, ``csv``, ``markdown``,
        ``junit``, and all others of ``lossratio report``. The page is written at the end of the run in any case.

        | `Write Report`    html    junit
        """
        directory = self.session.directory
        paths: tuple[Path, ...] = ()
        if directory is not None:
            paths = write_reports(directory.path, formats or (PAGE,))

        if not paths:
            raise ReportError(
                "Nothing has been measured yet in this suite. Call e.g. 'Find NDR And PDR' first."
            )
        for path in paths:
            say(f"lossratio: {path}")
