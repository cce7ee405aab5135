"""What a model on the processors does to the process it runs in."""

from __future__ import annotations

import platform
import resource
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from random import Random
from typing import Any, TypeVar

import pytest

from sightline.models.local import cpu

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
    cpu._threads.cache_clear()
    _in_new_thread(library.set_num_threads, 4)
    yield library
    cpu._threads.cache_clear()
    library.set_num_threads(before)


def test_each_model_gets_the_same_share_of_the_threads_and_gives_them_back(torch: Any) -> None:
    for _ in range(3):
        _in_new_thread(cpu.share_threads, 2)
        assert _in_new_thread(torch.get_num_threads) == 2
        cpu.release()
        assert _in_new_thread(torch.get_num_threads) == 4


def test_two_models_at_once_do_not_halve_each_other(torch: Any) -> None:
    _in_new_thread(cpu.share_threads, 2)
    _in_new_thread(cpu.share_threads, 2)
    assert _in_new_thread(torch.get_num_threads) == 2
    cpu.release()
    cpu.release()
    assert _in_new_thread(torch.get_num_threads) == 4


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc can be told")
def test_memory_that_a_tensor_leaves_behind_is_there_for_the_next(torch: Any) -> None:
    sizes = Random(0).choices([1 << 16, 1 << 18, 1 << 20, 1 << 21], k=300)

    def pages() -> int:
        """Pages that a round of tensors, nine alive at a time, had to take from the system."""
        torch.set_num_threads(1)
        alive: deque[Any] = deque(maxlen=9)
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        for size in sizes:
            alive.append(torch.ones(size))
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before

    _in_new_thread(cpu.share_threads, 2)
    rounds = _in_new_thread(lambda: [pages() for _ in range(4)])
    # Without it 15 to 30 % of all pages are taken anew in each round.
    assert min(rounds) < 0.05 * sum(sizes) * 4 / resource.getpagesize()
