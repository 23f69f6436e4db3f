"""What the keeper of a lease answers; no process on a node is in these tests."""

from lossratio.testbed.reservation.keeper.main import Keeper
from lossratio.testbed.reservation.keeper.record import ReservationFile


def taken(keeper, token):
    lease = {"owner": "alice@ci3", "process": 1, "purpose": "", "started": "", "token": token}
    return keeper.take({"token": token, "lease": lease})


def test_a_lease_that_was_left_is_continued_with_its_token_and_with_no_other(tmp_path):
    path = str(tmp_path / "reservation")
    first = Keeper(ReservationFile(path))
    assert taken(first, "a")["event"] == "granted"
    first.keep({"op": "leave", "seconds": 60.0})

    second = Keeper(ReservationFile(path))
    assert taken(second, "b")["event"] == "waiting"
    answer = taken(second, "a")
    assert (answer["event"], answer["adopted"]) == ("granted", True)
