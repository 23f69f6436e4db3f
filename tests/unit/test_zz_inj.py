import pytest, re
import test_nobody_wrongly_blamed as T
from perfect_sut import *
from dataclasses import replace
KINDS = dict(T.KINDS)
from lossratio.mlrsearch import RFC2544, TST009
KINDS["rfc"] = (T.Throughput, {"goals": (RFC2544,)})
KINDS["tst"] = (T.Throughput, {"goals": (TST009,), "memory_rest": 15.0})
KINDS["confirm60"] = (T.Confirmation, {"load": 3e5, "loss_ratio": 0.0})
T.KINDS.update(KINDS)
def late(m, c, n):
    n = min(c.received_frames, round(n)); m.late += n
    return replace(c, received_frames=c.received_frames - n)
def rate(c): return c.sent_frames / (c.elapsed_s or 1.0)
def long_unsent(m, c): return unsent(c, min(.4, .004 * m.trial.duration))
def above(m, c): return unsent(c, .003 if rate(c) > 120e3 else 0)
def one_each(m, c): return unsent(c, .1) if c.name == 'x' or hash(c.name) % 2 else dropped(c, .02)
def one_way(m, c):
    m.k = getattr(m, 'k', 0) + 1
    return unsent(c, .1) if m.k == 1 else c
def all_late7(m, c): return late(m, c, c.sent_frames) if m.number % 7 == 3 else c
def late_some(m, c): return late(m, c, .002 * c.sent_frames)
def late_same(m, c): return late(m, c, 431)
def late_share(m, c): return late(m, c, .1 * c.sent_frames)
def drop_same(m, c): return dropped(c, min(.9, 431 / c.sent_frames))
def drop_first(m, c): return dropped(c, .1) if m.began < 15 else c
def drop_grow(m, c): return dropped(c, min(.4, .003 * m.number))
def drop_spell(m, c): return dropped(c, .03) if m.began % 60 < 30 else c
def drop_turn(m, c): return dropped(c, .03) if m.number % 2 else c
def mixed(m, c):
    c = unsent(c, 1 / c.sent_frames); c = dropped(c, 1 / c.sent_frames) if c.sent_frames > 1 else c; return late(m, c, 1)
def refused_always(m, c): return unsent(c, .1, refused_frames=round(.1 * c.sent_frames))
STATE = {}
def tired(m, c, f):
    s = STATE.setdefault(id(m.random), {'until': -1, 'n': 0, 'hi': 0})
    if m.number != s['n']:
        s['n'] = m.number
        s['bad'] = m.began + (getattr(m.trial, 'rest', 0) or 0) < s['until']
    out = f(c) if s['bad'] else c
    if rate(c) > 60e3: s['until'] = m.began + m.trial.duration + 10
    return out
def tired_sender(m, c): return tired(m, c, lambda c: unsent(c, .3))
def tired_receiver(m, c): return tired(m, c, lambda c: dropped(c, max(0, 1 - 150e3 / rate(c))))
def tired_late(m, c): return tired(m, c, lambda c: late(m, c, .05 * c.sent_frames))
def rare(m, c): return unsent(c, 40 / c.sent_frames) if m.random.random() < .08 * m.trial.duration else c
def all_but_some(m, c): return unsent(c, .97)
def drops_all(m, c): return dropped(c, 1.0) if m.number > 4 else c
def drops_high_turn(m, c): return dropped(c, .2) if m.number % 3 == 0 and rate(c) > 1e5 else c
INJ = [long_unsent, above, one_each, one_way, all_late7, late_some, late_same, late_share, drop_same, drop_first, drop_grow, drop_spell, drop_turn, mixed, refused_always, tired_sender, tired_receiver, tired_late, rare, all_but_some, drops_all, drops_high_turn]
@pytest.mark.parametrize("injector", INJ, ids=lambda i: i.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_it(tmp_path, kind, injector):
    STATE.clear()
    T.test_a_perfect_sut_is_not_blamed_for_what_its_tester_did(tmp_path, kind, injector)
