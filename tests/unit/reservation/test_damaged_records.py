"""What is in the file of a reservation although no keeper wrote it: foreign, cut off, flipped, old or new."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st
from ssh_server import needs_sshd

from lossratio.errors import ReservationError
from lossratio.testbed.reservation.keeper.record import RECORD_BYTES, RecordError, ReservationFile, parsed
from lossratio.testbed.reservation.lease import TestbedReservedError, clear, holder_of

LEASE = {
    "version": 3,
    "ticket": 90_000_000_000,
    "token": "0123456789abcdef",
    "owner": "alice@ci3",
    "process": 4711,
    "purpose": "nightly",
    "started": "2026-03-01T22:00:04Z",
    "expires": 160.5,
}


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """What a keeper writes while a lease is held."""
    file = ReservationFile(str(tmp_path_factory.mktemp("reservation") / "testbed"))
    with file.mutex() as changed:
        changed["lease"] = dict(LEASE)
    with open(file.path, "rb") as data:
        return data.read()


@given(st.binary(max_size=RECORD_BYTES))
def test_any_bytes_in_the_file_are_a_record_or_damaged(data):
    with suppress(RecordError):
        assert set(parsed(data)) == {"granted", "lease"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(LEASE)), inner, max_size=11),
    max_leaves=12,
)


@pytest.mark.whole
@given(st.fixed_dictionaries({}, optional={"lease": json_values, "granted": json_values}))
def test_any_json_in_the_file_is_a_record_or_damaged(value):
    try:
        read = parsed(json.dumps(value).encode())
    except RecordError:
        return
    assert read["lease"] is None or set(read["lease"]) >= set(LEASE)
    assert type(read["granted"]) is int


@pytest.mark.parametrize(
    "data", [b"[" * RECORD_BYTES, b"\0" * RECORD_BYTES, b'{"lease": {"expires": 1e999}}', b"1" * 4000]
)
def test_json_that_confuses_readers_is_damaged(data):
    with pytest.raises(RecordError, match="the record is damaged"):
        parsed(data)


@pytest.mark.parametrize(
    "change",
    [
        {"owner": None},
        {"process": True},
        {"expires": "160.5"},
        {"expires": 1e999},
        {"ticket": -1e30},
        {"ticket": 1 << 62},
        {"version": None},
    ],
)
def test_a_lease_with_one_wrong_field_is_damaged(change):
    with pytest.raises(RecordError, match="the record is damaged"):
        parsed(json.dumps({"lease": {**LEASE, **change}, "granted": 0}).encode())


def test_a_record_that_was_cut_off_is_damaged(record):
    for size in range(1, len(record.rstrip())):
        with pytest.raises(RecordError, match="the record is damaged"):
            parsed(record[:size])


class TestOnTheNode:
    pytestmark = needs_sshd

    @pytest.mark.parametrize("content", [b"{}", b'{"lease": {"token": 1}}', b'{"jobs": [1, 2]}', b"\x7fELF"])
    def test_a_damaged_record_is_reported_in_one_sentence_and_repaired_by_force(self, lab, content):
        lab.take().release()
        lab.file.write_bytes(content)
        session = lab.session()
        damaged = pytest.raises(
            ReservationError, match=r"/testbed: the record is damaged .*lossratio lab release --force\.$"
        )
        with damaged:
            lab.take("bob@desk", session=session)
        with damaged:
            holder_of(session, lab.claim())
        with damaged:
            clear(session, lab.claim(), force=False)
        assert lab.file.read_bytes() == content
        assert clear(session, lab.claim(), force=True) is None
        lab.take("bob@desk", session=session)
        with pytest.raises(TestbedReservedError, match="bob@desk"):
            lab.take("alice@ci3")

    def test_a_record_of_a_later_version_is_left_alone_even_by_force(self, lab):
        lab.take().release()
        later = json.dumps({"granted": 7, "lease": {"version": 99}}).encode()
        lab.file.write_bytes(later)
        for act in (lambda: lab.take(), lambda: clear(lab.session(), lab.claim(), force=True)):
            with pytest.raises(ReservationError, match="a newer version of lossratio has written it"):
                act()
        assert lab.file.read_bytes() == later

    def test_a_purpose_that_is_longer_than_a_record_damages_none(self, lab):
        lab.take("alice@ci3", purpose="\U0001f680" * 5000)
        assert holder_of(lab.session(), lab.claim()).owner == "alice@ci3"
