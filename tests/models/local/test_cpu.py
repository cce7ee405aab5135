"""What a model on the processors does to the process it runs in."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

import pytest

from sightline.models.local import model

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra 'local'")

T = TypeVar("T")


def _in_new_thread(work: Callable[..., T], *args: Any) -> T:
    """As each model's threads are: a thread keeps the number that it began with."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work, *args).result()


@pytest.fixture
def torch() -> Iterator[Any]:
    """torch with four threads, as on a machine of four cores."""
    library = import_module("torch")
    before = library.get_num_threads()
    model._threads.cache_clear()
    _in_new_thread(library.set_num_threads, 4)
    yield library
    model._threads.cache_clear()
    library.set_num_threads(before)


def test_each_model_gets_the_same_share_of_the_threads_and_gives_them_back(torch: Any) -> None:
    for _ in range(3):
        _in_new_thread(model.share_threads, 2)
        assert _in_new_thread(torch.get_num_threads) == 2
        model.release()
        assert _in_new_thread(torch.get_num_threads) == 4


def test_two_models_at_once_do_not_halve_each_other(torch: Any) -> None:
    _in_new_thread(model.share_threads, 2)
    _in_new_thread(model.share_threads, 2)
    assert _in_new_thread(torch.get_num_threads) == 2
    model.release()
    model.release()
    assert _in_new_thread(torch.get_num_threads) == 4


_PAGE_FAULTS = """
import resource
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from random import Random

import torch
from sightline.models.local import model

sizes = Random(0).choices([1 << 16, 1 << 18, 1 << 20, 1 << 21], k=300)

def pages() -> int:
    torch.set_num_threads(1)
    alive = deque(maxlen=9)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for size in sizes:
        alive.append(torch.ones(size))
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before

model.share_threads(2)
with ThreadPoolExecutor(1) as pool:
    rounds = pool.submit(lambda: [pages() for _ in range(4)]).result()
print(min(rounds) / (sum(sizes) * 4 / resource.getpagesize()))
"""
"""Prints the share of a round's pages, nine tensors alive at a time, that came anew from the system."""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc can be told")
def test_memory_that_a_tensor_leaves_behind_is_there_for_the_next() -> None:
    """In a process of its own: malloc's heaps keep what other tests left in them."""
    printed = subprocess.run([sys.executable, "-c", _PAGE_FAULTS], capture_output=True, text=True, check=True)
    # Without it 15 to 30 % of all pages are taken anew in each round.
    assert float(printed.stdout) < 0.05
