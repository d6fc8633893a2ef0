"""Chains of work on several processors: pieces in order, the last chain behind the others, and an end at a failure."""

from __future__ import annotations

import threading
import time

import pytest

from hindsight.online import relay as module
from hindsight.online.relay import relay


@pytest.fixture(params=[1, 2, 5])
def processors(request, monkeypatch):
    monkeypatch.setattr(module, "PROCESSORS", request.param)
    monkeypatch.setattr(module, "_pool", [])
    return request.param


@pytest.mark.parametrize(("chains", "pieces"), [(2, 1), (2, 7), (4, 3), (6, 20)])
def test_every_piece_is_done_once_and_in_order(processors, chains, pieces):
    done, lock = [[] for _ in range(chains)], threading.Lock()

    def do(chain, piece):
        with lock:
            if chain == chains - 1:
                assert all(piece in each for each in done[:-1])
            done[chain].append(piece)
        time.sleep(0.0002 * (chain + 1))
        return True

    relay(do, chains, pieces)
    assert done == [list(range(pieces))] * chains


def test_after_a_failure_no_chain_goes_further(processors):
    done = [[], [], []]

    def do(chain, piece):
        done[chain].append(piece)
        return chain != 1 or piece != 2

    relay(do, 3, 50)
    assert done[1] == done[2] == [0, 1, 2]
    assert done[0][:3] == [0, 1, 2]


def test_an_exception_is_raised_when_nobody_works_any_more(processors):
    working = set()

    def do(chain, piece):
        working.add(chain)
        try:
            time.sleep(0.001)
            if chain == 0 and piece == 3:
                raise KeyError("three")
        finally:
            working.remove(chain)
        return True

    with pytest.raises(KeyError, match="three"):
        relay(do, 4, 10)
    assert not working
