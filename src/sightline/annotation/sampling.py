"""Which items a project takes, and in which order: whole clusters, with known inclusion probabilities."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from random import Random

from msgspec.structs import replace

from sightline.annotation.types import Item, Pick
from sightline.builders.stratified_sampling import proportional
from sightline.errors import UserError


def pick_items(items: Sequence[Item], pick: Pick, clusters: int | None, seed: int) -> list[Item]:
    """Sample whole clusters: all items about an image are in the sample, or none.

    Args:
        clusters: The number of clusters to sample; None for all.
    """
    if pick == "all" or clusters is None:
        return list(items)
    if clusters < 1:
        raise UserError("--items samples nothing", found=clusters, expected="1 or more")
    stratum_of: dict[str, str] = {}
    for item in items:
        stratum_of.setdefault(item.cluster, item.stratum if pick == "stratified" else "")
    sizes = Counter(stratum_of.values())
    counts = _drawn(dict(sorted(sizes.items())), min(clusters, len(stratum_of)))
    members: dict[str, list[str]] = defaultdict(list)
    for cluster, stratum in stratum_of.items():
        members[stratum].append(cluster)
    random = Random(f"sample {seed}")
    probability: dict[str, float] = {}
    for stratum in sorted(members):
        for cluster in random.sample(members[stratum], counts[stratum]):
            probability[cluster] = counts[stratum] / sizes[stratum]
    return [
        replace(item, probability=probability[item.cluster]) for item in items if item.cluster in probability
    ]


def _drawn(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """How many clusters of each stratum are drawn: in proportion to its size, but each has a part."""
    if count < len(sizes):
        raise UserError(
            "--items leaves strata without a cluster",
            found=count,
            expected=f"{len(sizes)} or more, one for each stratum",
        )
    counts = proportional(sizes, count)
    if all(counts[stratum] for stratum in sizes):
        return counts
    more = proportional({stratum: size - 1 for stratum, size in sizes.items()}, count - len(sizes))
    return {stratum: 1 + more[stratum] for stratum in sizes}


def share(items: Sequence[Item], shared: int, annotators: int, seed: int) -> list[Item]:
    """Give some items to all annotators and the others to one each (CODIS, appendix A).

    The same queries are shared in each run: items with the same texts but the response.
    """
    queries = list(dict.fromkeys(_query(item) for item in items))
    if not shared or shared >= len(queries):
        return list(items)
    drawn = set(Random(f"shared {seed}").sample(sorted(queries), shared))
    return [replace(item, annotators=annotators if _query(item) in drawn else 1) for item in items]


def ordered(items: Sequence[Item], phases: Sequence[str], *, mixed: bool, seed: int) -> list[Item]:
    """Order and number the items of a project.

    In a mixed order, the items of the strata alternate in proportion to their number, so that what is
    judged first is a sample of the whole.
    """
    names = phases or [""]
    by_phase: Mapping[str, list[Item]] = {name: [] for name in names}
    for item in items:
        by_phase[item.phase].append(item)
    result: list[Item] = []
    for name in names:
        result += _alternating(by_phase[name], seed) if mixed else by_phase[name]
    return [replace(item, number=number) for number, item in enumerate(result, start=1)]


def _alternating(items: Sequence[Item], seed: int) -> list[Item]:
    """The items of each stratum in random order, spread evenly over the whole."""
    random = Random(f"order {seed}")
    strata: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        strata[item.stratum].append(item)
    placed: list[tuple[float, float, Item]] = []
    for stratum in sorted(strata):
        members = random.sample(strata[stratum], len(strata[stratum]))
        placed += [
            ((place + random.random()) / len(members), random.random(), item)
            for place, item in enumerate(members)
        ]
    return [item for *_, item in sorted(placed, key=lambda one: one[:2])]


def _query(item: Item) -> tuple[str, ...]:
    sample = item.hidden.get("sample", "")
    return (sample if isinstance(sample, str) else " ".join(sample), item.variant)
