"""An open testbed with a method for each kind of measurement: for notebooks, and for scripts of a few lines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

from lossratio.errors import FREE_SPACE, LossRatioError, ProfileError, storing
from lossratio.files import is_url, require_writable, shown_name
from lossratio.measurements.measure import RequestedKind, check_callback
from lossratio.measurements.measurement import TestPlace
from lossratio.results import RunDirectory, TestIdentity, TestResult, installed_kinds, result_name
from lossratio.values import did_you_mean, require_types, shown_value

if TYPE_CHECKING:
    from lossratio.dut import AnyOptions
    from lossratio.nodes import Credentials
    from lossratio.testbed import Ready, Recovery as Repairs, Testbed, TrialSettings
    from lossratio.traffic import TrafficProfile
else:
    # The class is imported only when a testbed is opened, because the import takes a while. The testbed then lends its
    # attributes.
    Testbed = object


def measured_kinds() -> dict[str, RequestedKind[Any, Any]]:
    """The kinds that an open testbed measures, by the names of its methods."""
    kinds = [kind for kind in installed_kinds() if isinstance(kind, RequestedKind)]
    return {kind.method: kind for kind in reversed(kinds) if kind.method is not None}


class OpenTestbed(Testbed):
    """A `lossratio.testbed.Testbed` with methods that measure. Open it with `open_testbed`.

    If a measurement names another kind of DUT than the testbed has, the testbed is closed, and opened again with that
    kind. If that fails, the next measurement tries again.

    There is a method for each installed kind (`lossratio.results.Kind.method`). Their arguments are the fields of
    each kind's request, listed in the generated `open_testbed.pyi`.
    """

    def __init__(
        self,
        file: Path,
        results: Path,
        resume: Path | None,
        dut: str | None,
        options: AnyOptions,
        settings: Mapping[str, Any],
    ) -> None:
        self._file = file
        self._resume = None if resume is None else RunDirectory(resume)
        self._settings = settings
        self._directory = RunDirectory(results)
        self._measurements: Counter[str] = Counter()
        self._results: list[TestResult] = []
        # The last kind that was requested; its set-up may have failed.
        self._dut = (dut, dict(options))
        self._testbed = self._opened()
        self._name = self._testbed.request.topology.name
        self._is_open = True
        self._is_closed = False

    @property
    def results(self) -> tuple[TestResult, ...]:
        """The results of its methods so far, in order."""
        return tuple(self._results)

    def ready_for(
        self, profile: TrafficProfile, *settings: TrialSettings
    ) -> AbstractContextManager[Ready]:
        """Makes the testbed ready for a traffic profile; see `lossratio.testbed.Testbed.ready_for`.

        Raises:
            LossRatioError: If it was closed.
        """
        self._require_not_closed()
        return self._open().ready_for(profile, *settings)

    def __getattr__(self, name: str) -> Any:
        kind = measured_kinds().get(name)
        if kind is not None:
            return self._measuring(kind)
        try:
            return getattr(self._open(), name)
        except AttributeError:
            meant = (
                did_you_mean(name, measured_kinds())
                or f" It measures {', '.join(measured_kinds())}."
            )
            raise AttributeError(f"A testbed has no method or value {name!r}.{meant}") from None

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuses copies of all kinds: they would have the same connections, which only one of them could close."""
        raise LossRatioError(
            f"The testbed {self._name} cannot be copied or pickled. Open it again with open_testbed, or "
            "copy its results."
        )

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *dir(self._testbed), *measured_kinds()})

    def close(self) -> None:
        """Stops all traffic, and restores the nodes to their earlier state."""
        if self._is_open:
            self._testbed.close()
        self._is_open = False
        self._is_closed = True

    def __enter__(self) -> OpenTestbed:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def __repr__(self) -> str:
        dut, options = self._dut
        if dut is None:
            shown = ""
        else:
            shown = f", {dut}" + "".join(f" {name}={value}" for name, value in options.items())

        return f"<testbed {self._name}{shown}>"

    def _measuring(self, kind: RequestedKind[Any, Any]) -> Callable[..., TestResult]:
        """The method that measures a kind."""

        def method(
            frame_size: str | int,
            profile: str = kind.request.usual_profile,
            *,
            dut: str | None = None,
            options: AnyOptions | None = None,
            bidirectional: bool | None = None,
            name: str | None = None,
            on_progress: Callable[[Any], None] | None = None,
            **asked: Any,
        ) -> TestResult:
            from lossratio.traffic import check_sends_streams

            require_types(
                LossRatioError,
                ("dut", dut, (str, NoneType), _DUT),
                ("name", name, (str, NoneType), "the name of the result"),
            )
            check_callback(on_progress)
            traffic = _traffic(profile, frame_size, bidirectional)
            request = kind.request(profile=traffic, **asked)
            check_sends_streams(self._testbed.request.topology, traffic)
            testbed = self._with(dut, options)

            title = name or f"{frame_size} {kind.called(request)}"
            self._measurements[title] += 1
            test = TestIdentity(
                name=result_name(title, self._measurements[title]), suite=self.request.topology.name
            )

            place = TestPlace(test, self._directory, self._resume)
            result: TestResult = type(kind)().perform(testbed, request, place, on_progress)
            self._results.append(result)
            return result

        method.__name__ = str(kind.method)
        # Python uses this name in the error for a missing argument.
        method.__qualname__ = f"{type(self).__name__}.{kind.method}"
        method.__doc__ = kind.request.__doc__
        return method

    def _opened(self) -> Testbed:
        from lossratio.testbed import Testbed as Plain, open_testbed as open_plain

        # Functions that take a testbed also take this one, which only type checkers know as a subclass.
        Plain.register(OpenTestbed)
        dut, options = self._dut
        return open_plain(self._file, dut=dut, options=options, **self._settings)

    def _with(self, dut: str | None, options: AnyOptions | None) -> Testbed:
        """The testbed with this kind of DUT, which is set up first if necessary.

        Raises:
            LossRatioError: If it was closed, or the set-up failed.
        """
        self._require_not_closed()
        wanted = (dut, _options(options))
        if wanted not in ((None, {}), self._dut):
            from lossratio.testbed import dut_request

            # A wrong option is an error before the testbed is closed.
            dut_request(*wanted)
            self._dut = wanted
            if self._is_open:
                self._is_open = False
                self._testbed.close()
        return self._open()

    def _require_not_closed(self) -> None:
        """Checks that the testbed can still measure.

        Raises:
            LossRatioError: If it was closed.
        """
        if self._is_closed:
            raise LossRatioError(
                f"The testbed {self._name} is closed. Measure inside its with block or before close(), or open it "
                "again with open_testbed."
            )

    def _open(self) -> Testbed:
        """The testbed. After a failed set-up, it is opened again, or the reason is raised again."""
        if not self._is_open and not self._is_closed:
            self._testbed = self._opened()
            self._is_open = True
        return self._testbed


def open_testbed(
    topology: str | Path,
    *,
    dut: str | None = None,
    options: AnyOptions | None = None,
    results: str | Path = "results",
    resume: str | Path | None = None,
    duts: int | None = None,
    nic: str | None = None,
    links: int = 1,
    credentials: Credentials | None = None,
    recovery: Repairs | None = None,
) -> OpenTestbed:
    """Opens a testbed for measurements, and sets up its DUTs. Close it at the end, preferably with a ``with`` block.

    The methods that measure write into the directory of `results`. If `resume` is the directory of an interrupted run
    (it may be the same directory), each measurement continues after its last trial there. For everything else, see
    `lossratio.testbed.open_testbed`.

    Raises:
        LossRatioError: As `lossratio.testbed.open_testbed`; or if an argument has the wrong type, or the directory
            `resume` does not exist.
    """
    from lossratio.nodes import Credentials as Secrets
    from lossratio.testbed import Recovery as Attempts

    # Table: an argument, its value, its types, and the name of these types.
    require_types(
        LossRatioError,
        ("topology", topology, (str, PathLike), "the name or the path of a topology"),
        ("dut", dut, (str, NoneType), _DUT),
        ("results", results, (str, PathLike), "the path of a directory"),
        ("resume", resume, (str, PathLike, NoneType), "the path of a directory"),
        ("duts", duts, (int, NoneType), "a whole number"),
        ("nic", nic, (str, NoneType), "the name of a NIC model"),
        ("links", links, (int,), "a whole number"),
        ("credentials", credentials, (Secrets, NoneType), "of the class Credentials"),
        ("recovery", recovery, (Attempts, NoneType), "of the class Recovery"),
    )
    earlier = None if resume is None else Path(resume)
    # Unlike Path, os.path has an answer for a name that is too long for a file.
    if earlier is not None and not os.path.isdir(earlier):
        raise LossRatioError(
            f"There is no run to continue in {shown_name(earlier)}. Correct resume, or leave it out."
        )

    settings: dict[str, Any] = {"duts": duts, "nic": nic, "links": links}
    settings |= {} if credentials is None else {"credentials": credentials}
    settings |= {} if recovery is None else {"recovery": recovery}
    if is_url(results):
        raise LossRatioError(
            f"results: {shown_name(results)} is a URL. Give a directory on this machine."
        )
    with storing(
        f"write to {shown_name(results)}", f"{FREE_SPACE}, or give another directory as results."
    ):
        require_writable(Path(results))
    return OpenTestbed(Path(topology), Path(results), earlier, dut, _options(options), settings)


_DUT = "the name of a kind of DUT, such as 'linux_bridge'"


def _options(options: Any) -> Any:
    """The options of a kind of DUT.

    Raises:
        LossRatioError: If they are not a dictionary.
    """
    if isinstance(options, Mapping | NoneType):
        return dict(options or {})
    raise LossRatioError(
        f"options must be a dictionary, such as {{'police': '50 kfps'}}, not {shown_value(options)}."
    )


def _traffic(
    profile: str | PathLike[str], frame_size: str | int, bidirectional: bool | None
) -> TrafficProfile:
    """The test traffic of a measurement.

    Raises:
        ProfileError: If there is no such profile, or the frame size is impossible.
    """
    from lossratio.traffic import load_profile, parse_frame_size

    if not isinstance(profile, str | PathLike):
        raise ProfileError(
            f"profile must be the name or the path of a traffic profile, not {shown_value(profile)}."
        )
    try:
        size = parse_frame_size(frame_size)
    except ValueError as error:
        raise ProfileError(f"frame_size: {error}") from error
    return load_profile(profile, frame_size=size, bidirectional=bidirectional)
