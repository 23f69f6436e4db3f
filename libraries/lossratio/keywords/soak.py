"""Keywords of soak tests."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Literal

from lossratio.keywords.arguments import DEFAULT_PROFILE, FrameRate, FrameSize, Share, seconds, typed_keyword
from lossratio.keywords.measuring import describe_profile, measured
from lossratio.keywords.session import Keywords
from lossratio.measurements import warm_up_like
from lossratio.measurements.soak import (
    TARGET_LOSS_RATIO,
    SoakPreset,
    SoakRequest,
    SoakResult,
    find_critical_load,
    warm_start_from,
)
from lossratio.plrsearch import TIMEOUT, LikelihoodName, SelectionName, Weighting
from lossratio.traffic import load_profile
from lossratio.trials import Integrity
from lossratio.units import format_target


class SoakKeywords(Keywords):
    """The search for a critical load."""

    @typed_keyword()
    def find_critical_load(
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        preset: SoakPreset | None = None,
        target_loss_ratio: Share = Share(TARGET_LOSS_RATIO),  # noqa: B008 (a number, which nobody changes)
        timeout: timedelta = timedelta(seconds=TIMEOUT),
        precision: Share | None = None,
        stop_on_misfit: bool = False,
        likelihood: LikelihoodName = SoakRequest.likelihood,
        weighting: Weighting = SoakRequest.weighting,
        selection: SelectionName = SoakRequest.selection,
        trial_duration: timedelta | Literal["auto"] | None = None,
        trial_growth: timedelta | None = None,
        warm_start: bool = False,
        bidirectional: bool | None = None,
        min_load: FrameRate | None = None,
        max_load: FrameRate | None = None,
        warm_up: timedelta | None = None,
        warm_up_profile: str | None = None,
        ramp: timedelta = timedelta(),
        rest: timedelta = timedelta(),
        integrity: Integrity = Integrity.DOUBT,
        resume: Path | None = None,
    ) -> SoakResult:
        """Searches for the critical load: the load with a loss ratio of ``target_loss_ratio`` in the long run (PLRsearch).

        The result is an estimate with its 95 % interval. It is irregular if the trials contradict the model of the
        estimate, or if the critical load may be outside of the allowed loads.

        | =Argument=           | =What it is= |
        | ``preset``           | ``csit``: everything as in FD.io CSIT's soak tests, to compare number by number. |
        | ``precision``        | Width of the 95 % interval, as a share of the load, that ends the search before ``timeout``. The interval is wider for that, by 1.1 to 1.3 times. |
        | ``stop_on_misfit``   | Whether the search ends as soon as the trials contradict the model. |
        | ``likelihood``       | How counts of lost frames are distributed: ``varying`` (with the SUT's capacity), ``poisson`` or ``geometric``. |
        | ``weighting``        | How both fitting functions are combined: by their ``evidence``, or ``equal``, as in the Internet draft. |
        | ``selection``        | How loads are chosen: ``posterior``, ``draft`` as in the Internet draft, or ``csit``. |
        | ``trial_duration``   | Duration of the first trial. Left out: 2 s, or 5.1 s with ``selection=draft`` or ``csit``. ``auto``: 2 s, and if early trials show that the capacity is alike for longer, that long. |
        | ``trial_growth``     | How much longer each trial is than the last. Left out: as the selection has it. |
        | ``warm_start``       | Whether to begin at the bounds of the search that this suite made last, with the same traffic. |

        The other arguments are described under `Arguments of measurements`.

        | `Find Critical Load`    frame_size=64B    timeout=30 min
        | `Find Critical Load`    64B    target_loss_ratio=1e-5    precision=0.05 %    warm_start=True
        """  # noqa: E501 (a row of a table cannot be broken)
        traffic = load_profile(profile, frame_size=frame_size, bidirectional=bidirectional)
        request = SoakRequest(
            traffic,
            target_loss_ratio,
            min_load,
            max_load,
            timeout.total_seconds(),
            precision,
            stop_on_misfit,
            likelihood,
            weighting,
            selection=selection,
            trial_duration="auto" if isinstance(trial_duration, str) else seconds(trial_duration),
            trial_growth=seconds(trial_growth),
            warm_start=warm_start_from(self.session.last_result, traffic) if warm_start else (),
            warm_up=warm_up_like(traffic, seconds(warm_up), warm_up_profile),
            ramp=ramp.total_seconds(),
            rest=rest.total_seconds(),
            integrity=integrity,
        )
        if preset is not None:
            request = request.preset(preset)
        return measured(
            self.session,
            f"Searching for the load with loss ratio {format_target(target_loss_ratio)}: {describe_profile(traffic)}",
            lambda testbed, place, show: find_critical_load(testbed, request, place, show),
            resume,
        )
