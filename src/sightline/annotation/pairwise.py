"""The agreement of every two annotators: share and Cohen's kappa, for any number of labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations

from msgspec import Struct


class PairAgreement(Struct, frozen=True):
    """How two annotators agree.

    Attributes:
        kappa: Cohen's kappa; None if chance alone makes both agree on everything.
    """

    first: int
    second: int
    items: int
    share: float
    kappa: float | None


def pairwise(votes: Iterable[Mapping[int, str]]) -> list[PairAgreement]:
    """Compare every two annotators.

    >>> [pair] = pairwise([{1: "yes", 2: "yes"}, {1: "no", 2: "no"}, {1: "no", 2: "yes"}, {1: "no", 2: "no"}])
    >>> pair.share, pair.kappa
    (75.0, 0.5)
    """
    shared: dict[tuple[int, int], list[tuple[str, str]]] = defaultdict(list)
    for of_item in votes:
        for first, second in combinations(sorted(of_item), 2):
            shared[first, second].append((of_item[first], of_item[second]))
    return [_agreement(*pair, given) for pair, given in sorted(shared.items())]


def mean_kappa(pairs: Iterable[PairAgreement]) -> float | None:
    """Average the kappas of pairs.

    Returns:
        The mean of those that have one; None if none has.
    """
    kappas = [pair.kappa for pair in pairs if pair.kappa is not None]
    return sum(kappas) / len(kappas) if kappas else None


def _agreement(first: int, second: int, given: list[tuple[str, str]]) -> PairAgreement:
    n = len(given)
    observed = sum(one == other for one, other in given) / n
    ones, others = Counter(one for one, _ in given), Counter(other for _, other in given)
    by_chance = sum(ones[label] * others[label] for label in ones) / n**2
    kappa = (observed - by_chance) / (1 - by_chance) if by_chance < 1 else None
    return PairAgreement(first, second, n, 100 * observed, kappa)
