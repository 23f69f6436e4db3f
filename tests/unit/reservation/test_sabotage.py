"""Somebody damages the file of a reservation while the testbed is held: does traffic of two holders ever overlap?"""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from contextlib import suppress

from ssh_server import needs_sshd
from waiting import wait_until

from lossratio.errors import NodeError, ReservationError
from lossratio.testbed.reservation.lease import ReservationLostError, TestbedReservedError, clear

pytestmark = needs_sshd
SECONDS = float(os.environ.get("LOSSRATIO_SABOTAGE_SECONDS", "8"))
MOST_SECONDS = SECONDS + 60.0
"""A busy machine goes on until enough has happened, and no longer than that."""
LEAST_SPANS = 3
SEED = int(os.environ.get("LOSSRATIO_SABOTAGE_SEED", "13"))
HOLDERS = 3
MOST_OVERLAP = 0.1

# Stands for a sender: it notes the time every millisecond, as long as it lives.
TRAFFIC = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    os.write(fd, b"%.6f\\n" % time.monotonic())
    time.sleep(0.001)
"""


def damages(file):
    other = file.with_name("other")

    def replace():
        other.write_bytes(b"{}")
        other.rename(file)

    return [
        file.unlink,
        replace,
        lambda: file.rename(other),
        lambda: os.truncate(file, 0),
        lambda: os.truncate(file, 100),
        lambda: file.write_bytes(b'{"lease": null}'),
        lambda: file.write_bytes(os.urandom(200)),
    ]


class Contest:
    def __init__(self, lab, folder):
        self.lab = lab
        self.folder = folder
        self.began = time.monotonic()
        self.held = self.lost = self.damaged = 0

    def is_over(self):
        has_seen_enough = self.lost and self.overlap()[0] >= LEAST_SPANS
        return time.monotonic() - self.began > (SECONDS if has_seen_enough else MOST_SECONDS)

    def hold_again_and_again(self, number, session):
        dice = random.Random(f"{SEED} {number}")
        for turn in itertools.count():
            if self.is_over():
                return
            with suppress(TestbedReservedError, ReservationLostError, NodeError):
                try:
                    lease = self.lab.take(f"holder{number}", wait=5.0, seconds=20.0, session=session)
                except TestbedReservedError:
                    raise
                except ReservationError:
                    # Damaged while nobody had it: somebody has to say that it is free.
                    clear(session, self.lab.claim(), force=True)
                    continue
                self.hold(lease, session, self.folder / f"{number}-{turn}", dice.uniform(0.2, 1.0))

    def hold(self, lease, session, beats, seconds):
        self.held += 1
        session.start(self.lab.python, "-S", "-c", TRAFFIC, str(beats))
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                lease.check()
                time.sleep(0.01)
        except ReservationLostError:
            self.lost += 1
            raise
        finally:
            lease.release()

    def sabotage(self):
        dice = random.Random(SEED)
        while not self.is_over():
            time.sleep(dice.uniform(0.2, 0.8))
            with suppress(OSError):
                dice.choice(damages(self.lab.file))()
                self.damaged += 1

    def overlap(self):
        """Seconds for which traffic of two holders overlapped at most."""
        spans = []
        for file in self.folder.iterdir():
            beats = [float(line) for line in file.read_text().splitlines()[:-1]]
            if beats:
                spans.append((beats[0], beats[-1]))
        spans.sort()
        ends = itertools.accumulate((end for _, end in spans), max)
        return len(spans), max((end - begin for end, (begin, _) in zip(ends, spans[1:], strict=False)), default=0.0)


def test_traffic_of_two_holders_never_overlaps_although_the_file_is_damaged_all_the_time(lab, tmp_path):
    folder = tmp_path / "beats"
    folder.mkdir()
    contest = Contest(lab, folder)
    sessions = [lab.session() for _ in range(HOLDERS)]
    threads = [
        *(threading.Thread(target=contest.hold_again_and_again, args=session) for session in enumerate(sessions)),
        threading.Thread(target=contest.sabotage),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans, overlap = contest.overlap()
    print(
        f"held {contest.held}, lost {contest.lost}, damaged {contest.damaged}, spans {spans}, overlap {overlap:.4f} s"
    )
    assert contest.lost
    assert spans >= LEAST_SPANS
    assert overlap < MOST_OVERLAP
    wait_until(lambda: quiet(folder))


def quiet(folder):
    before = sum(file.stat().st_size for file in folder.iterdir())
    time.sleep(0.1)
    return sum(file.stat().st_size for file in folder.iterdir()) == before
