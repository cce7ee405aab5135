"""How far what was built means the same as its original: by people, by a judge, by sentence similarity.

MM-R3, section 3.2: by forced choice people found 92 % of 100 rephrasings and 86 % of 100 restyled images
equivalent to their originals. The three measures are kept apart; none stands in for another.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, field, structs

from sightline.builders.manifest import MANIFEST, fingerprint, read_manifest
from sightline.engine.client import ModelClient
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.formats.atomic_file import AtomicLineFile
from sightline.formats.digests import file_digest
from sightline.formats.groups import ORIGINAL, GroupLine, by_group, read_groups
from sightline.formats.verdicts import read_verdicts
from sightline.metric_types import MetricValue, PublishedValue
from sightline.progress import progress
from sightline.prompts import load
from sightline.scoring.judge_prompts import same_or_different
from sightline.scoring.majority import majority
from sightline.scoring.similarity import THRESHOLD
from sightline.types import Answer, Case, Verdict

if TYPE_CHECKING:
    from sightline.models.embedder import Embedder

QUESTION = "equivalent"
"""What is decided about a pair: verdict `right` is the same, `wrong` is different."""

HUMANS, JUDGE, SIMILARITY, SHARE = "human", "judge", "similarity", "similar"
"""The measures: shares judged the same, the mean sentence similarity, the share above THRESHOLD."""

WINDOW = 1024
"""Pairs that are embedded together."""

_PUBLISHED = {"rephrase": (92.0, "100 rephrasings"), "restyle": (86.0, "100 restyled images")}


class VariantPair(Struct, frozen=True):
    """An original and one of its variants: what differs between them, texts or images (paths on disk).

    `targets` are the addresses of the two: digests of group, variant and content, so that a verdict on a pair
    does not outlive a change of it.
    """

    targets: tuple[str, str]
    group: str
    variant: str
    kind: Literal["text", "image"]
    first: str
    second: str
    cluster: str


class EquivalenceReport(Struct, frozen=True):
    """What was found: a value a measure, null with its reason where it was not asked for or does not apply.

    The judge and the similarity looked at `pairs` of the `pairs_built`, people at those that they were given.
    `different` names, by measure, the pairs (group, variant) that were not found the same; `embedder` is the
    identity of the one that was used.
    """

    folder: str
    kind: str
    pairs_built: int
    pairs: int
    metrics: list[MetricValue]
    notes: list[str] = field(default_factory=list)
    different: Mapping[str, list[tuple[str, str]]] = field(default_factory=dict)
    embedder: str | None = None
    unanswered: int = 0


class EquivalenceMeasure(Struct, frozen=True):
    """One way to tell: its values, its remarks, the pairs that it found different, the calls that failed."""

    metrics: list[MetricValue]
    notes: list[str] = field(default_factory=list)
    different: list[tuple[str, str]] = field(default_factory=list)
    unanswered: int = 0


def read_pairs(folder: Path) -> list[VariantPair]:
    """Every pair of original and variant in a builder's folder, in its order.

    UserError where it holds no groups file, a group without its original, or variants that differ from it in
    neither question nor image; also where an image is gone.
    """
    path = folder / "groups.jsonl"
    if not path.is_file():
        raise UserError("holds no groups.jsonl", file=folder, expected="a folder of `sightline build`")
    pairs: list[VariantPair] = []
    digests: dict[str, str] = {}
    for name, lines in by_group(read_groups(path)).items():
        original = next((line for line in lines if line.variant == ORIGINAL), None)
        if original is None:
            expected = f"a line with variant '{ORIGINAL}' in each group"
            raise UserError("has no original to compare with", file=path, record=name, expected=expected)
        pairs += [_pair(original, line, folder, digests) for line in lines if line is not original]
    if not pairs:
        raise UserError("holds originals alone", file=path, expected="a variant at least")
    return pairs


def draw_pairs(pairs: Sequence[VariantPair], count: int, seed: int) -> list[VariantPair]:
    """At most `count` pairs drawn by `seed`, one a group; their order stays."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for place, pair in enumerate(pairs):
        by_name[pair.group].append(place)
    draw = random.Random(f"{QUESTION} {seed}")
    names = draw.sample(list(by_name), min(count, len(by_name)))
    return [pairs[place] for place in sorted(draw.choice(by_name[name]) for name in names)]


def write_pairs(pairs: Iterable[VariantPair], path: Path) -> None:
    """Write pairs for people to fill in: lines of verdicts.jsonl, with what is compared beside them.

    `verdict` is 'unscored' until somebody puts 'right' (the same) or 'wrong' (different) there, and a name
    into `judge`.
    """
    with AtomicLineFile(path) as file:
        for pair in pairs:
            open_ = {"question": QUESTION, "verdict": "unscored", "judge": "", "variant": pair.variant}
            shown = {"kind_of_pair": pair.kind, "first": pair.first, "second": pair.second}
            file.write(msgspec.json.encode({"targets": pair.targets, **open_, "group": pair.group, **shown}))


def built(folder: Path) -> str:
    """The kind of builder that made a folder, '' where no manifest says it."""
    return read_manifest(folder).kind if (folder / MANIFEST).is_file() else ""


def by_humans(
    pairs: Sequence[VariantPair], file: Path, *, kind: str = "", seed: int = 0
) -> EquivalenceMeasure:
    """The share of pairs that people judged the same, beside the paper's where `kind` has one.

    Several people's verdicts on a pair count by their majority; a tie leaves the pair out, counted. Lines
    that nobody filled in are counted too. UserError where no line is about a pair of this folder.
    """
    known = {frozenset(pair.targets): pair for pair in pairs}
    verdicts = [one for one in read_verdicts(file) if one.question == QUESTION and one.kind == "human"]
    votes: dict[frozenset[str], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        votes[frozenset(verdict.targets)].append(verdict)
    about = {targets: given for targets, given in votes.items() if targets in known}
    if not about:
        raise UserError(
            "no line is about a pair of this folder",
            file=file,
            found=f"{len(verdicts):,} lines with question '{QUESTION}'",
            expected="lines that --write wrote for it, filled in",
        )
    judged = [(known[targets], _same(given)) for targets, given in about.items()]
    decided = [(pair, same) for pair, same in judged if same is not None]
    filled = sum(_voted(given) for given in about.values())
    notes = _counted(
        {
            "pairs left out: nobody has filled them in": len(about) - filled,
            "pairs left out: as many said the same as different": filled - len(decided),
            "lines about no pair of this folder": sum(len(v) for t, v in votes.items() if t not in known),
        }
    )
    names = sorted({one.judge for given in about.values() for one in given if one.judge and _voted([one])})
    metric = _share(HUMANS, decided, seed, judge=", ".join(names) or None, reason="no pair is decided")
    if kind in _PUBLISHED:
        value, what = _PUBLISHED[kind]
        printed = PublishedValue("human", value, "3.2", note=f"forced choice on {what} of MM-R3's own data")
        metric = structs.replace(metric, published=[printed])
    return EquivalenceMeasure([metric], notes, _different(decided))


async def by_judge(
    pairs: Sequence[VariantPair],
    client: ModelClient,
    store: Store,
    judge: str,
    *,
    seed: int = 0,
    show_progress: bool = False,
) -> EquivalenceMeasure:
    """The share of pairs of questions that a chat model calls the same; images are not put to it.

    A reply that is neither 'same' nor 'different' leaves its pair out, as does a call that failed; both are
    counted. Raises EnvironmentFailedError where the store fails.
    """
    texts = [pair for pair in pairs if pair.kind == "text"]
    if not texts:
        return EquivalenceMeasure(
            [_null(JUDGE, "the judge compares questions; these pairs differ in their images")]
        )
    scorer = same_or_different(load(__package__)["equivalent"]["text"])
    cases = [Case(pair.targets, QUESTION, "", (pair.first, pair.second)) for pair in texts]
    requests = [client.keyed(scorer.ask(case)) for case in cases]
    await client.ask(store, requests, f"judge {judge}", show_progress=show_progress)
    known = store.look_up(list({keyed.request.key for keyed in requests}))
    replies = [known.get(keyed.request.key) for keyed in requests]
    verdicts = [scorer.read(one.text).verdict if isinstance(one, Answer) else "error" for one in replies]
    decided = [(p, v == "right") for p, v in zip(texts, verdicts, strict=True) if v in ("right", "wrong")]
    failed = verdicts.count("error")
    notes = _counted(
        {
            "pairs left out: the judge's reply is neither 'same' nor 'different'": verdicts.count(
                "undecided"
            ),
            "pairs left out: the judge has not answered": failed,
        }
    )
    metric = _share(JUDGE, decided, seed, judge=judge, reason="the judge decided nothing")
    return EquivalenceMeasure([metric], notes, _different(decided), failed)


def by_similarity(
    pairs: Sequence[VariantPair], model: Embedder, *, seed: int = 0, show_progress: bool = False
) -> EquivalenceMeasure:
    """The mean sentence similarity of originals and rephrasings, and the share of pairs above THRESHOLD.

    In percent, as the paper prints similarities. Images have no sentence similarity.
    """
    texts = [pair for pair in pairs if pair.kind == "text"]
    if not texts:
        reason = "sentence similarity compares texts; these pairs differ in their images"
        return EquivalenceMeasure([_null(SIMILARITY, reason), _null(SHARE, reason)])
    cosines: list[float] = []
    with progress(f"embedding ({model.name})", len(texts), "texts", show_progress=show_progress) as advance:
        for first in range(0, len(texts), WINDOW):
            window = texts[first : first + WINDOW]
            vectors = model.embed([text for pair in window for text in (pair.first, pair.second)])
            cosines += (vectors[0::2] * vectors[1::2]).sum(axis=1).tolist()
            advance(len(window))
    above = [(pair, cosine > THRESHOLD) for pair, cosine in zip(texts, cosines, strict=True)]
    metrics = [
        _mean(SIMILARITY, list(zip(texts, cosines, strict=True)), seed, shares=False),
        _share(SHARE, above, seed),
    ]
    return EquivalenceMeasure(metrics, [f"sentence similarity by {model.name}"], _different(above))


def report(
    folder: Path,
    pairs: Sequence[VariantPair],
    looked_at: int,
    measures: Mapping[str, EquivalenceMeasure],
    embedder: str | None,
) -> EquivalenceReport:
    """All measures of a folder in one report; `measures` are by name, in the order of the report."""
    return EquivalenceReport(
        str(folder),
        built(folder),
        len(pairs),
        looked_at,
        [metric for measure in measures.values() for metric in measure.metrics],
        [note for measure in measures.values() for note in measure.notes],
        {name: measure.different for name, measure in measures.items() if measure.different},
        embedder,
        sum(measure.unanswered for measure in measures.values()),
    )


def not_asked(name: str, how: str) -> EquivalenceMeasure:
    """The place of a measure that was not asked for; `how` is what asks for it."""
    names = (SIMILARITY, SHARE) if name == SIMILARITY else (name,)
    return EquivalenceMeasure([_null(one, f"not asked for: {how}") for one in names])


def _pair(original: GroupLine, line: GroupLine, folder: Path, digests: dict[str, str]) -> VariantPair:
    texts = (original.question or original.prompt, line.question or line.prompt)
    kind: Literal["text", "image"] = "text" if texts[0] != texts[1] else "image"
    if kind == "image" and original.images == line.images:
        raise UserError(
            f"variant '{line.variant}' differs from the original in neither question nor image",
            file=folder / "groups.jsonl",
            record=line.group,
            expected="a perturbation",
        )
    shown = texts if kind == "text" else (_images(original, folder), _images(line, folder))
    targets = tuple(
        fingerprint(
            [one.group, one.variant, text, [_digest(folder / image, digests) for image in one.images]]
        )
        for one, text in zip((original, line), texts, strict=True)
    )
    cluster = original.cluster or "".join(_digest(folder / image, digests) for image in original.images)
    return VariantPair(
        (targets[0], targets[1]), line.group, line.variant, kind, *shown, cluster=cluster or line.group
    )


def _images(line: GroupLine, folder: Path) -> str:
    return ", ".join(str(folder / image) for image in line.images)


def _digest(path: Path, digests: dict[str, str]) -> str:
    name = str(path)
    if name not in digests:
        try:
            digests[name] = file_digest(path)
        except OSError as error:
            raise UserError(
                f"cannot be read: {error.strerror or error}",
                file=path,
                expected="the image as it was built",
            ) from None
    return digests[name]


def _voted(verdicts: Sequence[Verdict]) -> bool:
    return any(one.verdict in ("right", "wrong") for one in verdicts)


def _same(verdicts: Sequence[Verdict]) -> bool | None:
    """Whether most humans call the pair the same; None for a tie, or without a decision."""
    winner = majority(one.verdict for one in verdicts if one.verdict in ("right", "wrong"))
    return None if winner is None else winner == "right"


def _share(name: str, decided: Sequence[tuple[VariantPair, bool]], seed: int, **more: Any) -> MetricValue:
    return _mean(name, [(pair, float(same)) for pair, same in decided], seed, shares=True, **more)


def _mean(
    name: str,
    values: Sequence[tuple[VariantPair, float]],
    seed: int,
    *,
    shares: bool,
    judge: str | None = None,
    reason: str = "there is no pair",
) -> MetricValue:
    """The mean in percent with its 95 % interval, resampled by image; Wilson's where each has one pair."""
    from sightline.metrics.metric_values import clustered_mean

    clustered = [(pair.cluster, value) for pair, value in values]
    return structs.replace(
        clustered_mean(name, clustered, shares=shares, reason=reason, seed=seed), judge=judge
    )


def _null(name: str, reason: str) -> MetricValue:
    return MetricValue(name, "all", None, 0, 0, reason=reason)


def _different(decided: Iterable[tuple[VariantPair, bool]]) -> list[tuple[str, str]]:
    return [(pair.group, pair.variant) for pair, same in decided if not same]


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [f"{words}: {count:,}" for words, count in counts.items() if count]
