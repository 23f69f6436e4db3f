"""Keywords that read the counters of the devices under test, and reconfigure these devices."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from lossratio.dut import BlackBox
from lossratio.errors import DutError, SearchError
from lossratio.keywords.arguments import DEFAULT_PROFILE, FrameSize, typed_keyword
from lossratio.keywords.course import announce, describe_profile, measured
from lossratio.keywords.groups import Keywords
from lossratio.keywords.measurements import asks, request_of
from lossratio.keywords.session import Doubts, Session
from lossratio.measurements import reconfiguration
from lossratio.measurements.telemetry import (
    TELEMETRY_DURATION,
    TelemetryRequest,
    describe_telemetry,
)
from lossratio.measurements.throughput import ThroughputResult, add_telemetry
from lossratio.mlrsearch import SearchGoal
from lossratio.values import names_near, shown_value

_ENTRIES = 1000


class DeviceKeywords(Keywords):
    """Telemetry and reconfiguration."""

    group = "Device"

    @typed_keyword()
    def collect_telemetry(
        self,
        goal: str | None = None,
        *,
        duration: timedelta = timedelta(seconds=TELEMETRY_DURATION),
    ) -> ThroughputResult:
        """Makes one more trial after a search, reads the devices before and after it, and returns the search's result.

        The trial takes ``duration``, at the relevant lower bound of ``goal`` (by default PDR). It does not count as a
        trial of the search, because nothing may read a device while a search runs. For each device, the result has the
        frames that it received, transmitted and dropped (with the place of each drop, so that each frame is accounted
        for), and the statistics of its kind, such as VPP's ``show runtime``. All kinds also have the counters of
        interfaces and CPUs, and the output of ``perf stat`` if it is installed and allowed.

        | `Find NDR And PDR`    frame_size=64B
        | `Collect Telemetry`
        """
        result = telemetry_after_search(self.session, goal, duration.total_seconds())
        self.session.judge([result], None)
        return result

    @typed_keyword("Reconfigure DUTs")
    def reconfigure_duts(self, entries: int = _ENTRIES) -> None:
        """Adds ``entries`` entries to the forwarding table of each device.

        No entry matches the test traffic. The entries are addresses on a bridge, routes on a router, rules in Open
        vSwitch, and in VPP the entries of its forwarding mode. `Tear Down Testbed` removes them.
        """
        reconfiguration.reconfigure_duts(self.session.ready_testbed(), entries)

    @typed_keyword()
    def use_hook(self, hook: str, keyword: str, *arguments: Any, node: str | None = None) -> None:
        """Makes a ``keyword`` with its ``arguments`` the ``hook`` of a black box, until `Tear Down Testbed`.

        It takes precedence over a hook of the topology file. If there are several black boxes on the path, ``node``
        names one of them; by default, the hook applies to all.

        | =Hook=          | =What the keyword does= |
        | ``reset``       | It resets the state that trials leave behind. It is called before each trial. |
        | ``counters``    | It returns a dictionary with ``received`` and ``transmitted`` (by ``west`` and ``east``), ``dropped`` and ``details`` (by name); some of these may be missing. |
        | ``reconfigure`` | It adds entries. Their number is its last argument. |
        | ``describe``    | It returns text or a dictionary for the report. |

        | `Use Hook`    counters    Counters Of My Switch    10.0.0.1
        """  # noqa: E501 (a row of a table cannot be broken)
        for box in self._black_boxes(node):
            box.hooks.use(hook, lambda *more: BuiltIn().run_keyword(keyword, *arguments, *more))

    @typed_keyword()
    def call_hook(self, hook: str, *, entries: int = _ENTRIES, node: str | None = None) -> Any:
        """Calls the ``hook`` of a black box now, and returns its answer: the counters or the description as data.

        ``hook`` is ``reset``, ``counters``, ``reconfigure`` (which adds ``entries`` entries) or ``describe``. If there
        are several black boxes on the path, ``node`` names the one that you mean.

        | ${counters} =    `Call Hook`    counters
        """
        boxes = self._black_boxes(node)
        if len(boxes) > 1:
            raise DutError(
                f"There are {len(boxes)} black boxes on the path. Name one, for example node=BOX."
            )

        caller = boxes[0].hooks
        calls: dict[str, Callable[[], Any]] = {
            "reset": boxes[0].reset,
            "counters": caller.counters,
            "reconfigure": partial(caller.call, "reconfigure", entries),
            "describe": caller.describe,
        }
        if hook not in calls:
            raise DutError(
                f"There is no hook {shown_value(hook)}. The hooks are {names_near(hook, calls)}"
            )
        return calls[hook]()

    def _black_boxes(self, node: str | None) -> list[BlackBox]:
        duts = self.session.ready_testbed().duts
        boxes = [
            dut for dut in duts if isinstance(dut, BlackBox) and node in (None, dut.hop.node_name)
        ]
        if not boxes:
            which = "no black box" if node is None else f"no black box {node}"
            raise DutError(f"There is {which} on the path. Set up the testbed with dut=black_box.")
        return boxes

    @asks(reconfiguration.ReconfigurationRequest)
    @typed_keyword()
    def measure_reconfiguration_loss(
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        entries: int = _ENTRIES,
        keyword: str | None = None,
        goal: SearchGoal = reconfiguration.RECONFIGURATION_GOAL,
        doubts: Doubts | None = None,
        **fields: Any,
    ) -> reconfiguration.ReconfigurationResult:
        """Measures the frames lost while the devices are reconfigured, as FD.io CSIT does, and returns the result.

        It first makes a search with a strict ``goal`` (CSIT's: no loss in any trial, 11 s, width 0.1 %). Then traffic
        flows at the relevant lower bound while `Reconfigure DUTs` adds ``entries`` entries, or while your own
        ``keyword`` runs. The result contains the number of lost frames; frames that the generator could not send do not
        count. It also contains the lost time: how long it takes to send that number of frames.

        | `Measure Reconfiguration Loss`    frame_size=64B    entries=10000
        | `Measure Reconfiguration Loss`    frame_size=64B    keyword=Restart The Routing Daemon
        """

        def reconfigure() -> None:
            if keyword is None:
                self.reconfigure_duts(entries)
            else:
                BuiltIn().run_keyword(keyword)

        fields |= {"goals": (goal,), "reconfigure": reconfigure}
        request = request_of(
            self.session, reconfiguration.ReconfigurationRequest, frame_size, profile, fields
        )
        if keyword is None:
            reconfiguration.check_reconfigurable(self.session.ready_testbed(), entries)
        else:
            # This comes before the search, which would be in vain if the keyword did not exist.
            BuiltIn().run_keyword("Keyword Should Exist", keyword)
        what = f"Measuring the loss of a reconfiguration: {describe_profile(request.profile)}"
        return measured(
            self.session,
            what,
            lambda testbed, *at: reconfiguration.measure_reconfiguration_loss(
                testbed, request, *at
            ),
            doubts,
        )


def telemetry_after_search(
    session: Session, goal: str | None = None, duration: float = TELEMETRY_DURATION
) -> ThroughputResult:
    """Collects telemetry at the bound that the last search found; see `DeviceKeywords.collect_telemetry`.

    Raises:
        SearchError: If no search has been made since the testbed was set up.
    """
    search = session.last_search
    if search is None:
        raise SearchError(
            "No search has been made since this testbed was set up. First call a keyword such as 'Find NDR And PDR'."
        )
    name, load = search.result.relevant_load(goal)
    searched = search.request
    request = TelemetryRequest(
        profile=searched.profile,
        rest=searched.rest,
        integrity=searched.integrity,
        load=load,
        goal=name,
        duration=duration,
    )
    announce(f"Collecting telemetry at {name}: {describe_profile(searched.profile)}")
    result = session.add_to(
        search, "telemetry", lambda testbed, *at: add_telemetry(testbed, request, *at)
    )
    logger.info(describe_telemetry(result.telemetry[-1]))
    session.notes_shown(result)
    return result
