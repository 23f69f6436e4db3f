"""The tests that a run of Robot Framework measures, each in one suite and one process."""

from typing import cast

from robot.api.deco import library
from robot.libraries.BuiltIn import BuiltIn

from lossratio import results
from lossratio.errors import SearchError


@library(scope="GLOBAL", auto_keywords=False)
class Claims:
    """The tests that this run measures: no other suite or process writes their files until the run ends."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        # Robot Framework closes the listener of a global library at the end of the outermost suite.
        self.ROBOT_LIBRARY_LISTENER = self
        self._owners: dict[str, object] = {}
        self._claims: list[results.Claim] = []

    @classmethod
    def of_this_run(cls) -> "Claims":
        """The claims of Robot Framework's current run."""
        robot = BuiltIn()
        name = f"{cls.__module__}.{cls.__qualname__}"
        robot.import_library(name)
        return cast("Claims", robot.get_library_instance(name))

    def add(self, identity: str, owner: object, directory: results.RunDirectory) -> None:
        """Claims a test for its owner, the session of its suite.

        Raises:
            SearchError: If another suite of the run has a test with this identity, or another process measures it into
                the same directory, where it would overwrite the results.
            StorageError: If the claim cannot be written.
        """
        if identity not in self._owners:
            self._claims.append(directory.claim(identity))
            self._owners[identity] = owner
        if self._owners[identity] is not owner:
            raise SearchError(
                f"This run already measured the test {identity} in another suite: both would write the same files. "
                "Run the suite once, or give one of the suites its own name: Metadata    Id    NAME."
            )

    def close(self) -> None:
        """Releases all tests. Robot Framework calls this method."""
        for claim in self._claims:
            claim.release()
        self._claims.clear()
        self._owners.clear()
