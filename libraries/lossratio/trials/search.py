"""The loop of a search, between the controller and the measurer."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from lossratio.errors import SearchError
from lossratio.trials.journal import Journal
from lossratio.trials.trial import Controller, Measurer, ResultT_co, TrialResult
from lossratio.values import NotNegative, checked

_ASIDE = 10
"""Niceness of the thread that computes while a trial runs, because the generator may be on the same machine."""


@checked(SearchError)
def run_search(
    controller: Controller[ResultT_co],
    measurer: Measurer,
    *,
    journal: Journal | None = None,
    timeout: float | None = None,
    on_trial: Callable[[TrialResult], None] | None = None,
    load_step: NotNegative = 0.0,
) -> ResultT_co:
    """Runs a search to its end, and returns the controller's result.

    The controller first takes in the results of the journal. Their trials are not measured again.

    Args:
        controller: Chooses the trials.
        measurer: Performs them.
        journal: Keeps each result before the next trial starts.
        timeout: No trial starts after this many seconds of trials on the measurer's clock, including trials of the
            journal. The result is then marked as not finished.
        on_trial: Called with each newly measured result, after the controller has taken it in.
        load_step: The generator sends multiples of this load, in frames per second; 0: any load. A trial that the
            controller requests gets the nearest such load, also in the journal and in the result that the controller
            takes in.

    Raises:
        SearchError: If an argument makes no sense.
        LossRatioError: If the measurer raised it. All finished trials are then in the journal.
    """
    spent = 0.0
    for result in () if journal is None else journal.results:
        controller.next_trial()
        controller.record(result)
        spent += result.elapsed

    with ThreadPoolExecutor(1, initializer=os.nice, initargs=(_ASIDE,)) as beside:
        while timeout is None or spent < timeout:
            trial = controller.next_trial()
            if trial is None:
                break

            trial = trial.sendable(load_step)
            purpose = getattr(controller, "purpose", None)
            if journal is not None:
                journal.prove_before(trial)

            if hasattr(controller, "meanwhile"):
                meanwhile = beside.submit(controller.meanwhile)
            else:
                meanwhile = None

            result = TrialResult(trial, measurer.measure(trial))
            if journal is not None:
                text = None if purpose is None else str(purpose)
                journal.append(result, purpose=text, rule=getattr(purpose, "rule", None))

            if meanwhile is not None:
                meanwhile.result()
            controller.record(result)
            spent += result.elapsed
            if on_trial is not None:
                on_trial(result)

    return controller.result()
