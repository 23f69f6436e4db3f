"""The Robot Framework library: all groups of keywords, with a session for each suite, and reports on demand."""

import re
from pathlib import Path

from robot.api import logger
from robot.api.deco import keyword, library
from robot.result import Message, TestCase

from lossratio.errors import ReportError
from lossratio.keywords.arguments import FormatName, with_strict_types
from lossratio.keywords.checks import CheckKeywords
from lossratio.keywords.devices import DeviceKeywords
from lossratio.keywords.groups import with_tags_of_groups
from lossratio.keywords.live_view import has_own_console, say
from lossratio.keywords.measurements import with_keywords_of_kinds
from lossratio.keywords.rfc2544 import Rfc2544Keywords
from lossratio.keywords.session import NOTHING_MEASURED, Session
from lossratio.keywords.testbed import TestbedKeywords
from lossratio.keywords.tester import TesterKeywords
from lossratio.keywords.throughput import ThroughputKeywords
from lossratio.measurements.throughput import NdrPdrGoals
from lossratio.values import shortened
from lossratio.version import __version__

_MARK = "cannot be converted to "
_VALUE = re.compile(
    rf"(Argument '[^'\n]*' got value ')(.*?)('(?: \([\w. ]+\))? that {_MARK})", re.DOTALL
)


def with_short_values(message: str) -> str:
    """A message of Robot Framework, in which a value that cannot be converted is one short line.

    Robot Framework repeats such a value as a whole, and a result is dozens of lines long. A converter cannot change
    that, but a listener can.
    """
    if _MARK not in message:
        return message
    return _VALUE.sub(_shorter, message)


def _shorter(found: re.Match[str]) -> str:
    before, value, after = found.groups()
    return before + shortened(" ".join(value.split())) + after


@library(scope="SUITE", version=__version__, doc_format="ROBOT", listener="SELF")
@with_strict_types
@with_tags_of_groups
@with_keywords_of_kinds
class LossRatio(
    TestbedKeywords,
    ThroughputKeywords,
    CheckKeywords,
    Rfc2544Keywords,
    TesterKeywords,
    DeviceKeywords,
):
    """Keywords that measure how many frames a data plane forwards: NDR, PDR, MRR, and any search goal of RFC 9971.

    A suite says what to measure. The topology file says where:
    | ***** Settings *****
    | Resource          lossratio/resources/performance.resource
    | Suite Setup       `Set Up Testbed`    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
    | Suite Teardown    `Tear Down Testbed`
    | Test Template     `Find NDR And PDR`
    |
    | ***** Test Cases *****
    | 64B-1c-eth-l2bdbase-ndrpdr
    |     frame_size=64B    profile=ethip4-udp

    The resource file imports this library with these variables, which change from run to run:

    | =Variable=   | =What it sets= |
    | ``TOPOLOGY`` | The topology file. |
    | ``GOALS``    | The search goals: ``csit``, ``csit-half``, ``quick``, ``coarse`` or others. |
    | ``LATENCY``  | Whether searches also measure latency: ``on`` (the default of the resource file) or ``off``. |
    | ``TELEMETRY`` | Whether searches also collect telemetry: ``on`` (the default of the resource file) or ``off``. |
    | ``DOUBTS``   | Whether a doubt about a result is a warning (``warn``, the default of the resource file) or also fails the test (``fail``). |
    | ``HINTS``    | The folder with earlier runs, in which searches find their hints. |
    | ``NIGHTLY``  | ``as_before``: searches first ask whether the SUT is as before. It needs ``HINTS``. |
    | ``SEARCH_EVERY`` | With ``NIGHTLY:as_before``: the number of nights after which there is a search in any case. |
    | ``MIN_LOAD`` | The smallest load of searches for throughput, such as ``900 fps``. |
    | ``RESUME``   | The directory of an interrupted run to continue. |

    = Arguments of measurements =

    | =Argument=        | =What it is= |
    | ``frame_size``    | Bytes with frame check sequence (``64B``), or a mix of sizes: ``IMIX_v4_1``, or one of the profile's own. |
    | ``profile``       | Name of a traffic profile that comes with the library (``ethip4-udp``, ``ethip6-udp``, ``dot1q-ip4base`` ...), or the path of a file of your own. |
    | ``bidirectional`` | Whether both ports transmit. Default: what the profile says. |
    | ``max_load``      | The largest load, per transmitting interface (if directions differ, of the direction that sends most). Default: the smallest of the limits that the topology file gives for the generator, the links and the NICs. |
    | ``min_load``      | The smallest load, per transmitting interface as with ``max_load``. Default: 9001 fps as in FD.io CSIT; if the maximum load is below that, a tenth of the maximum load. |
    | ``timeout``       | No trial begins after this time. The result contains what is known by then, and is irregular. |
    | ``warm_up``       | Length of a first trial at maximum load whose result is discarded. Default: no such trial. |
    | ``warm_up_profile`` | Traffic profile of that trial, by name or file. Default: the profile of the measurement. |
    | ``ramp``          | Time before each trial in which the load grows from zero to the trial's load. Frames sent in this time are not counted. Default: trials begin at their full load. |
    | ``rest``          | Minimum time without traffic before each trial, for a device that remembers the previous trial. It counts towards the trial's time and ``timeout``. Default: the time that the kind of device needs; the result states it. |
    | ``integrity``     | What happens if frames come back more than once, changed, truncated, padded, or at the wrong port. They never count as received. ``doubt`` (the default): the result has a doubt, with its size. ``fail``: the test fails, as a fault of the device. ``off``: frames are counted but not compared; use it for a device that changes them on purpose, for example one that translates addresses. |
    | ``doubts``        | What happens if there are doubts about the result. ``warn``: each is a warning on the console and in the log, and a tag of the test, such as ``doubt-late-frames``. ``fail``: the test also fails. Default: what the library was imported with. |
    | ``hints``         | Directory of an earlier run, a folder of such directories, or a journal. After its trial at maximum load, the search goes to where the last searches of the same test found the bounds. Their trials are not evidence. Default: no hints. |
    | ``nightly``       | ``as_before``: before a search, a few trials ask whether the SUT is as in the last searches of the same test in ``hints``. If it is, there is no search, no latency and no telemetry, and the result says since when. Otherwise the search follows, and uses these trials. The question needs five searches with the same device, topology, version of lossratio and goals; replays of these must show that the answer is rarely wrong. Default: ``search``. |
    | ``search_every``  | With ``nightly=as_before``: the number of nights after which there is a search in any case. Default: 7. |
    | ``early_verdict`` | ``on``: a trial of a search ends as soon as it is certain to lose more than every goal allows, and counts as a full trial. This is faster, but no goal then complies with RFC 2544 unconditionally. ``off``: trials take their whole duration. Default: what the file of goals says, otherwise ``off``. |
    | ``per_direction`` | ``True``: the same search also finds each direction's own highest load for every goal, while all directions are offered the same load. Default: ``False``. |
    | ``end_at_coin`` | ``True``: the search gives up a goal if trials pass and fail by chance over a range of loads wider than the goal's width. The result is that zone ("chance decides from 515 to 570 kfps") instead of bounds, and is irregular because RFC 9971 has no such end. Default: ``False``. |
    | ``must_find``     | Whether the test fails if no load meets a goal. ``False``: the result is irregular, and the test passes. Default: ``True``. |
    | ``resume``        | Directory of an earlier run. If the same measurement of the same test was interrupted there, it continues, and nothing is measured twice. |

    Loads and rates are per transmitting interface. Results also give the aggregate, with the factor between the two.

    = Groups of keywords =

    The tags of keywords are their groups: ``Testbed`` (set up, reserve, tear down), ``Measurement`` (each returns its
    result), ``Check`` (each can fail a test because of the last result, or of the result in ``result``), ``Device``
    (hooks, telemetry, reconfiguration), ``Traffic`` (the generator itself) and ``Report``.

    = What a measurement leaves behind =

    The test's message gives the result in words. An irregular result is marked, with the reason. The log shows all
    numbers, the picture of the search, and how the result was measured. In the output directory, ``trials`` has a journal of each
    test, to which every trial is added as it is measured, and ``results`` has the result of each test as JSON.
    ``lossratio.html`` shows all results; it is written at the end of the run, or by `Write Report`. A measurement that
    cannot be trusted is an error, never a number.
    """  # noqa: E501 (a row of a table cannot be broken)

    def __init__(
        self,
        goals: str = NdrPdrGoals.csit.name,
        resume: Path | None = None,
        latency: bool = False,
        telemetry: bool = False,
        doubts: str | None = None,
        hints: Path | None = None,
        nightly: str | None = None,
        search_every: int | None = None,
        min_load: str | None = None,
    ) -> None:
        """Sets the defaults for all measurements of a suite.

        ``goals`` are the search goals of `Find NDR And PDR`: ``csit`` (the default), ``quick``, presets, or a file of
        goals. ``resume`` is the directory of an earlier run whose interrupted measurements are continued. With
        ``latency``, `Find NDR And PDR` also measures latency, and with ``telemetry`` it collects the devices' telemetry
        at PDR, as FD.io CSIT's tests do. ``doubts`` says whether a doubt about a result is a warning (``warn``) or
        also fails the test (``fail``). The default is the value of the variable ``DOUBTS``, which ``lossratio run
        --doubts`` sets, or else ``warn``.
        ``hints``, ``nightly``, ``search_every`` and ``min_load`` are arguments of all searches for throughput that do
        not have their own.
        """
        given = {
            "hints": hints,
            "nightly": nightly,
            "search_every": search_every,
            "min_load": min_load,
        }
        defaults = {name: value for name, value in given.items() if value is not None}
        super().__init__(
            Session(
                goals,
                resume,
                doubts,
                measures_latency=latency,
                collects_telemetry=telemetry,
                search_defaults=defaults,
            )
        )

        for problem in self.unusable:
            logger.warn(f"A kind of measurement has no keyword: {problem}")

    def log_message(self, message: Message) -> None:
        """Shortens wrong values in a message of the log. Robot Framework calls this method."""
        message.message = with_short_values(message.message)

    def start_test(self, data: object, result: TestCase) -> None:
        """Shows what the set-up of the suite measured. Robot Framework calls this method."""
        self._show_messages()

    def end_test(self, data: object, result: TestCase) -> None:
        """Shows what a test measured, also in its message, without long wrong values. Robot Framework calls it."""
        text = self._show_messages()
        if result.passed:
            result.message = f"{text}\n{result.message}".strip()
        result.message = with_short_values(result.message)

    def _show_messages(self) -> str:
        text = "\n\n".join(self.session.messages.values())
        self.session.messages.clear()
        if text and has_own_console():
            say(text)
        return text

    @keyword(tags=["Report"])
    def write_report(self, *formats: FormatName) -> None:
        """Writes reports of what the run has measured so far into its output directory.

        ``formats`` are ``html`` (the page ``lossratio.html``; the default), ``json``, ``csv``, ``markdown``,
        ``junit``, and all other formats of ``lossratio report``. The page is also written at the end of each run.

        | `Write Report`    html    junit
        """
        directory = self.session.directory
        paths: tuple[Path, ...] = ()
        if directory is not None:
            from lossratio.report import PAGE, write_reports

            paths = write_reports(directory.path, formats or (PAGE,))

        if not paths:
            raise ReportError(NOTHING_MEASURED)
        for path in paths:
            say(f"Report: {path}")
