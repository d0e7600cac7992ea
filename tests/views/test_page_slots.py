"""Pages that are drawn at the same moment: how many, and what holds up nobody."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from transformer_viz.views.server import page_slots
from transformer_viz.views.server.page_slots import page_slot, release_slot

PATIENCE = 60


def n_free() -> int:
    taken = [page_slots._slots.acquire(blocking=False) for _ in range(3)]
    if any(taken):
        page_slots._slots.release(sum(taken))
    return sum(taken)


def test_two_at_a_time_and_no_more(monkeypatch):
    monkeypatch.setattr(page_slots, "LONGEST_WAIT", PATIENCE)
    lock, both = threading.Lock(), threading.Barrier(2)
    inside, most = 0, list[int]()

    def page(_: int) -> None:
        nonlocal inside
        with page_slot():
            with lock:
                inside += 1
                most.append(inside)
            both.wait(PATIENCE)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(page, range(12)))
    assert len(most) == 12 and max(most) == 2


def test_pages_that_take_long_hold_up_no_other_and_one_that_waited_in_vain_gives_back_nothing(monkeypatch):
    monkeypatch.setattr(page_slots, "LONGEST_WAIT", 0.01)
    assert [page_slots._slots.acquire(blocking=False) for _ in range(2)] == [True, True]
    for _ in range(3):
        with page_slot():
            pass
    assert n_free() == 0
    page_slots._slots.release(2)
    assert n_free() == 2


def test_a_page_gives_its_slot_back_once_even_if_it_fails():
    release_slot()
    assert n_free() == 2, "there was none"
    with suppress(ZeroDivisionError), page_slot():
        assert n_free() == 1
        release_slot()
        release_slot()
        assert n_free() == 2
        raise ZeroDivisionError
    with page_slot():
        pass
    assert n_free() == 2
