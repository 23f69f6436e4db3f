"""The search by counts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lossratio.errors import SearchError
from lossratio.plrsearch.estimate.bounds import LossBounds
from lossratio.plrsearch.model import CriticalLoadQuestion, Row, count, from_rows, why_set_aside
from lossratio.trials import TrialInput, TrialResult

FINE = 0.005
NEAR = 0.1
LEAST_TRIALS = 10
OVERLOAD = 1e-3
STEPS = (0.01, 0.02, 0.04, 0.1, 0.2)
EVENT_STEPS = (0.05, 0.1, 0.2)
REFERENCE = 1.1
REPLICATES = 3
MORE = 5
CHECKS = (0.4, 0.75)
ROUND = 1e-9
AIM = 0.35
BATCH = 300.0
LONG, LONG_SHARE = 20.0, 1.0 / 12.0


class Evidence:
    """The trials that count, in the order of time."""

    def __init__(self, rows: list[Row], target: float) -> None:
        self.counts = from_rows(rows)
        self.target = target

    def between(self, low: float, high: float, batch: float = 1.0, looks: int = 1) -> LossBounds:
        c = self.counts
        at = (c.load >= low * (1 - ROUND)) & (c.load <= high * (1 + ROUND))
        return LossBounds.of(c.sent[at], c.lost[at], looks, batch)

    def clump(self, load: float) -> float:
        c = self.counts
        at = (abs(c.load / load - 1) < NEAR) & (c.lost < OVERLOAD * c.sent)
        squares = freedom = 0.0
        for one in np.unique(c.load[at]):
            same = at & (c.load == one)
            lost, sent = c.lost[same], c.sent[same]
            if len(lost) > 1 and lost.any():
                expected = sent * lost.sum() / sent.sum()
                squares += float(((lost - expected) ** 2 / expected).sum())
                freedom += len(lost) - 1
        size = squares / freedom if freedom else 1.0
        return size if 1.0 < size <= BATCH else 1.0

    def quiet(self, load: float) -> float:
        """Trials without loss that show that the events just above a load do not occur at it."""
        c = self.counts
        at = (c.load > load * (1 + ROUND)) & (c.load <= load * (1 + NEAR)) & (c.lost < OVERLOAD * c.sent)
        lossy = int((c.lost[at] > 0).sum())
        if not lossy or 2 * lossy > at.sum() or c.lost[at].sum() <= self.target * c.sent[at].sum():
            return 0.0
        return 3.7 * int(at.sum()) / lossy

    def pause(self) -> tuple[float, float] | None:
        """Length and ring of pauses, if the losses of events follow a line."""
        c = self.counts
        events = (c.lost > 16) & (c.lost < OVERLOAD * c.sent)
        order = np.argsort(c.load[events])[:8]
        loads, lost = c.load[events][order], c.lost[events][order]
        if len(loads) < 3 or loads[-1] < 1.03 * loads[0]:
            return None
        length, ring = np.polyfit(loads, lost, 1)
        rest = lost - (length * loads + ring)
        if length <= 0 or ring >= 0 or np.sqrt(np.mean(rest**2)) > 0.01 * lost.mean():
            return None
        return float(length), float(-ring)

    def is_verified(self, load: float) -> bool:
        batch = self.clump(load)
        below = self.between((1 - NEAR) * load, load * (1 - 2 * ROUND), batch)
        if below.least > self.target:
            return False
        quiet = self.quiet(load)
        for up in (1.0, 1 + FINE, 1 + NEAR / 2, 1 + NEAR):
            at = self.between(load, up * load, batch)
            if at.trials >= LEAST_TRIALS and at.most <= self.target and (at.lossy or at.trials >= quiet):
                both = self.between((1 - NEAR) * load, up * load, batch)
                if both.lost <= self.target * both.frames:
                    return True
        return False


@dataclass(frozen=True)
class Found:
    stated: float
    verified: float | None
    contradicted: float | None
    doubts: tuple[str, ...]
    rarest_s: float
    trial_s: float
    long_s: float | None
    sentences: tuple[str, ...] = ()

    @property
    def is_regular(self) -> bool:
        return not self.doubts


class SearchByCounts:
    def __init__(self, target: float, min_load: float, max_load: float, *, timeout: float = 1800.0,
                 precision: float | None = None, duration: float = 2.0, warm_start: Iterable[float] = ()) -> None:
        self.question = CriticalLoadQuestion(target, min_load, max_load)
        self.target = target
        self.timeout, self.precision, self.duration = timeout, precision, duration
        self.elapsed = 0.0
        self.trials = 0
        self._rows: list[Row] = []
        self._since = 0
        self._begin = max_load
        self._held: float | None = None
        self._failed: list[float] = []
        self._cap = math.inf
        self._downs = 0
        self._goods: list[float] = []
        self._reference: float | None = None
        self._checks = 0
        self._longs: list[Row] = []
        self._bucket = None
        self._pause = None
        self._changes: list[str] = []
        self._next: tuple[TrialInput, str] | None = None
        self.stopped: str | None = None

    # ---- ask and tell

    def next_trial(self) -> TrialInput | None:
        if self._next is None and self.stopped is None:
            left = self.timeout - self.elapsed
            if left < self.duration:
                self.stopped = "timeout"
                return None
            load, why = self._choose(left)
            if self.stopped is None:
                seconds = self._long_s if why == "long" else self.duration
                load = min(max(load, self.question.min_load), self.question.max_load)
                self._next = TrialInput(min(seconds, left), load), why
        return self._next[0] if self._next else None

    def record(self, result: TrialResult) -> None:
        self.trials += 1
        why = self._next[1] if self._next else ""
        if why_set_aside(result) is None:
            row = count(result, self.elapsed)
            if why == "long":
                self._longs.append(row)
            else:
                self._rows.append(row)
            if why == "reference":
                self._referred(row)
        self.elapsed += result.elapsed
        self._next = None

    # ---- choose

    @property
    def _long_s(self) -> float:
        return min(LONG, LONG_SHARE * self.timeout)

    @property
    def _evidence(self) -> Evidence:
        return Evidence(self._rows[self._since:], self.target)

    def _choose(self, left: float) -> tuple[float, str]:
        evidence = self._evidence
        if self._held is None:
            load = self._bracketed(evidence)
            if load is not None:
                return load, "bracket"
            if self._reference is None and (good := self._best_goodput(evidence)) is not None:
                self._reference = min(self.question.max_load, REFERENCE * good)
            if self._reference is not None:
                if len(self._goods) < REPLICATES + MORE * self._varies:
                    return self._reference, "reference"
            self._hold(evidence)
        if self._reference is not None and self._checks < len(CHECKS) and self.elapsed > CHECKS[self._checks] * self.timeout:
            self._checks += 1
            return self._reference, "reference"
        if self._wants_long(left):
            return self._held, "long"
        return self._keep(evidence, left), "hold"

    def _wants_long(self, left: float) -> bool:
        """Whether a long trial at the held load is due."""
        assert self._held is not None
        if left < self._long_s:
            return False
        there = [row for row in self._longs if row[0] >= self._held * (1 - ROUND)]
        if len(there) >= 2:
            return False
        if not self._longs or left < 4.0 * self._long_s:
            return not there or self._is_lossy(there[-1])
        return self._is_lossy(self._longs[-1]) and self._longs[-1][0] == self._held

    def _is_lossy(self, row: Row) -> bool:
        load, exposure, lost, *_ = row
        return lost > 3.0 * self.target * load * exposure + 3.0

    def _best_goodput(self, evidence: Evidence) -> float | None:
        c = evidence.counts
        over = c.lost > OVERLOAD * c.sent
        return float(c.forwarding_rate[over].max()) if over.any() else None

    @property
    def _varies(self) -> bool:
        return len(self._goods) >= REPLICATES and self._spread > 3.0 * self._noise

    @property
    def _spread(self) -> float:
        return float(np.std(self._goods, ddof=1)) if len(self._goods) > 1 else 0.0

    @property
    def _noise(self) -> float:
        return 6e-5 * float(np.mean(self._goods))

    def _referred(self, row: Row) -> None:
        load, exposure, lost, *_ = row
        good = load - lost / exposure
        if self._held is None:
            self._goods.append(good)
            return
        mean = float(np.mean(self._goods))
        if abs(good / mean - 1.0) > max(0.001, 4.0 * self._spread / mean):
            self._changes.append(f"{good / mean - 1.0:+.2%}")
            self._since = len(self._rows)
            self._begin = self._held * good / mean
            self._reference *= good / mean
            self._held = None
            self._failed, self._cap, self._longs = [], math.inf, []
            self._goods = [good]
        else:
            self._goods.append(good)

    def _bracketed(self, evidence: Evidence) -> float | None:
        """The next load of the bracket; None: it is narrow."""
        floor, ceiling = self._bracket(evidence)
        low, high = self.question.min_load, self.question.max_load
        if floor is None and ceiling is None:
            return self._begin
        c = evidence.counts
        if ceiling is None:
            assert floor is not None
            if floor >= high:
                return None
            return min(high, floor * (1 + 0.01 * 2.0 ** (len(c) - 1)))
        aimed = self._aimed(evidence, ceiling)
        if floor is None:
            if ceiling <= low:
                return None
            good = float(c.forwarding_rate[np.argmin(c.load)])
            if good < 0.9 * ceiling:
                return max(good if good > 0.3 * ceiling else 0.5 * ceiling, low)
            step = 0.01 * 2.0 ** int(np.sum(c.load < (1.0 + FINE) * good)) if len(c) > 1 else FINE
            step = min(step, 0.5)
            by_step = good * (1 - step)
            return max(by_step if aimed is None else min(max(aimed, good * (1 - min(2 * step, 0.5))), good * (1 - step / 2)), low)
        gap = ceiling - floor
        if gap <= FINE * ceiling:
            return None
        if aimed is not None:
            return min(max(aimed, floor + 0.2 * gap), ceiling - 0.2 * gap)
        return 0.5 * (floor + ceiling) if ceiling < 2 * floor else math.sqrt(floor * ceiling)

    def _aimed(self, evidence: Evidence, ceiling: float) -> float | None:
        c = evidence.counts
        ratio = c.lost / c.sent
        at = (ratio > self.target) & (ratio < 1e-2)
        loads = np.unique(c.load[at])[:2]
        if len(loads) < 2:
            return None
        first, second = (math.log(float(c.lost[at & (c.load == load)].sum() / c.sent[at & (c.load == load)].sum())) for load in loads)
        if second <= first:
            return None
        slope = (second - first) / (loads[1] - loads[0])
        return float(loads[0] - (first - math.log(AIM * self.target)) / slope)

    def _bracket(self, evidence: Evidence) -> tuple[float | None, float | None]:
        c = evidence.counts
        failed, passed = [], []
        for load in np.unique(c.load):
            at = c.load == load
            (failed if c.lost[at].sum() > self.target * c.sent[at].sum() else passed).append(float(load))
        ceiling = min(failed) if failed else None
        floor = max((load for load in passed if ceiling is None or load < ceiling), default=None)
        return floor, ceiling

    def _hold(self, evidence: Evidence) -> None:
        floor, ceiling = self._bracket(evidence)
        self._held = floor if floor is not None else self.question.min_load
        if ceiling is not None:
            self._failed.append(ceiling)
        if self._varies:
            mean = float(np.mean(self._goods))
            self._cap = max(mean - 7.0 * self._spread, 0.96 * min(self._goods))
            self._held = min(self._held, self._cap)
        self._downs = 0

    def _keep(self, evidence: Evidence, left: float) -> float:
        """The load to hold."""
        held = self._held
        assert held is not None
        at = evidence.between(held, held, evidence.clump(held))
        left /= max(self.elapsed / self.trials, self.duration)
        if self._bucket_seen(held):
            return self._held
        if at.trials and self._is_failed(at, left):
            steps = EVENT_STEPS if at.lossy <= 0.5 * at.trials else STEPS
            step = steps[min(self._downs, len(steps) - 1)]
            self._downs += 1
            self._failed = [held]
            lower = [load for load in np.unique(evidence.counts.load).tolist() if held * (1 - step) < load < held]
            better = max((load for load in lower if evidence.is_verified(load)), default=0.0)
            pause = evidence.pause()
            if pause is not None:
                self._pause = pause
                self._cap = min(self._cap, 0.998 * pause[1] / pause[0])
                if held > self._cap:
                    self._held = self._cap
                    return self._held
            self._held = max(held * (1 - step), better, self.question.min_load)
            return self._held
        if not evidence.is_verified(held):
            return held
        self._downs = 0
        self._failed = [load for load in self._failed if load > held]
        ceiling = min([*self._failed, self.question.max_load])
        higher = min(0.5 * (held + ceiling), self._cap)
        if ceiling - held > FINE * ceiling and higher > held * (1 + FINE / 4):
            self._held = higher
        elif self._failed and ceiling <= self._cap:
            above = evidence.between(ceiling, ceiling, evidence.clump(ceiling))
            if above.least <= self.target and above.trials < LEAST_TRIALS:
                return ceiling
            if above.trials >= LEAST_TRIALS and evidence.is_verified(ceiling):
                self._held = ceiling
        return self._held

    def _bucket_seen(self, held: float) -> bool:
        """Whether two long trials lose alike where short ones do not, which shows the rate in the long run."""
        longs = [row for row in self._longs if row[0] == held and self._is_lossy(row)]
        if len(longs) < 2 or not self._goods:
            return False
        lost = [row[2] for row in longs]
        if min(lost) < 0.8 * max(lost):
            return False
        seconds = self._long_s
        short = float(np.mean(self._goods)) * self.duration
        long = (held - longs[-1][2] / longs[-1][1]) * seconds
        rate = (long - short) / (seconds - self.duration)
        self._bucket = (rate, short - rate * self.duration)
        self._cap = rate * (1 - 1e-4)
        self._failed = [held]
        self._held = self._cap
        return True

    def _is_failed(self, at: LossBounds, trials_left: float) -> bool:
        if at.lost <= self.target * at.frames:
            return False
        if at.least > self.target:
            return True
        needed = at.burst * LossBounds.most_of(at.lost / at.burst) / self.target - at.frames
        return needed > 0.5 * trials_left * at.frames / at.trials

    # ---- result

    def result(self) -> Found:
        evidence = self._evidence
        loads = np.unique(evidence.counts.load).tolist()
        refuted_long = [row[0] for row in self._longs if self._is_lossy(row)]
        tops = [row[0] for row in self._longs if not self._is_lossy(row)]
        verified = max((load for load in loads if load <= self._cap and evidence.is_verified(load)), default=None)
        doubts = []
        stated = verified
        if stated is None:
            floor, ceiling = self._bracket(evidence)
            stated = self._held or floor or self.question.min_load
            doubts.append("not verified")
        contradicted = min((load for load in loads if load > stated and evidence.between(load, load, evidence.clump(load)).least > self.target), default=None)
        c = evidence.counts
        near = (c.load >= stated * (1 - ROUND)) & (c.load <= stated * (1 + NEAR / 2)) & (c.lost < OVERLOAD * c.sent)
        has_long = any(row[0] >= stated * (1 - ROUND) and not self._is_lossy(row) for row in self._longs)
        found = Found(stated, verified, contradicted, tuple(doubts), float(c.duration[near].sum()) / 3.0, self.duration, self._long_s if has_long else None, tuple(self._changes) + ((f"bucket {self._bucket}",) if self._bucket else ()) + ((f"pause {self._pause}",) if self._pause else ()))
        object.__setattr__(found, 'interval', (verified or 0.0, contradicted or 1e99))
        return found
