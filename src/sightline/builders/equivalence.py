"""Measures how far variants mean the same as their originals: by humans, a judge model, sentence similarity.

MM-R3, section 3.2: in a forced choice humans found 92 % of 100 rephrasings and 86 % of 100 restyled images
equivalent to their originals. The three measures are reported separately; none replaces another.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field, structs

from sightline.benchmarks.released import published_equivalence
from sightline.builders.folder import MANIFEST, read_manifest
from sightline.engine.client import ModelClient
from sightline.errors import UserError
from sightline.formats.files import file_digest, json_digest
from sightline.formats.groups import ORIGINAL, GroupLine, by_group, read_groups
from sightline.formats.jsonl import read_verdicts
from sightline.metrics.agreement import majority
from sightline.models.embedder import Embedder
from sightline.progress import progress
from sightline.scoring.scorer import same_or_different
from sightline.scoring.similarity import THRESHOLD, cosines
from sightline.store.answers import KeyedRequest
from sightline.store.database import run_in_thread
from sightline.store.store import Store
from sightline.text import load
from sightline.types import Answer, Case, MetricValue, Range, Verdict

HUMANS, JUDGE, SIMILARITY, SHARE = "human", "judge", "similarity", "similar"
"""Metrics: shares of pairs judged the same, mean sentence similarity, share of pairs above THRESHOLD."""


class EquivalenceReport(Struct, frozen=True):
    """All measures of a built folder; `different`: measure -> the pairs (group, variant) that differ."""

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
    """One measure: its values, remarks, the pairs that differ, and the number of failed requests."""

    metrics: list[MetricValue]
    notes: list[str] = field(default_factory=list)
    different: list[tuple[str, str]] = field(default_factory=list)
    unanswered: int = 0


def by_humans(pairs: Sequence[VariantPair], file: Path, *, kind: str = "") -> EquivalenceMeasure:
    """Compute the share of pairs that humans judge the same.

    The majority of the verdicts on a pair counts; ties are left out and counted, as are unfilled lines.
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
            expected="verdicts of `annotate new equivalence` on it",
        )
    judged = [(known[targets], _same(given)) for targets, given in about.items()]
    decided = [(pair, same) for pair, same in judged if same is not None]
    filled = sum(_voted(given) for given in about.values())
    notes = _counted(
        {
            "pairs excluded: not filled in": len(about) - filled,
            "pairs excluded because of a tie": filled - len(decided),
            "lines that are not about a pair of this folder": sum(
                len(v) for t, v in votes.items() if t not in known
            ),
        }
    )
    names = sorted({one.judge for given in about.values() for one in given if one.judge and _voted([one])})
    metric = _share(HUMANS, decided, judge=", ".join(names) or None, reason="no pair is decided")
    if printed := published_equivalence(kind):
        metric = structs.replace(metric, published=printed)
    return EquivalenceMeasure([metric], notes, _different(decided))


async def by_judge(
    pairs: Sequence[VariantPair],
    client: ModelClient,
    store: Store,
    judge: str,
    *,
    show_progress: bool = False,
) -> EquivalenceMeasure:
    """Compute the share of pairs of questions that a chat model calls the same. Images are not compared.

    Replies that are neither 'same' nor 'different' and failed requests are left out and counted.
    """
    texts = [pair for pair in pairs if pair.kind == "text"]
    if not texts:
        return EquivalenceMeasure(
            [_null(JUDGE, "the judge compares questions; these pairs differ in their images")]
        )
    scorer = same_or_different(load(__package__)["equivalent"]["text"])
    cases = [Case(pair.targets, QUESTION, "", (pair.first, pair.second)) for pair in texts]

    async def ask(cases: Sequence[Case], attempt: int) -> list[str]:
        def requests_of_cases() -> list[KeyedRequest]:
            return [client.keyed(scorer.ask(case), attempt) for case in cases]

        requests = await run_in_thread(requests_of_cases)
        await client.ask(store, requests, f"judge {judge}", show_progress=show_progress)
        stored = await run_in_thread(store.answers.look_up, list({keyed.request.key for keyed in requests}))
        replies = [stored.get(keyed.request.key) for keyed in requests]
        return [
            scorer.reading(one, case).verdict if isinstance(one, Answer) else "error"
            for case, one in zip(cases, replies, strict=True)
        ]

    verdicts = await ask(cases, 0)
    for attempt in range(1, scorer.max_attempts):
        open_places = [place for place, verdict in enumerate(verdicts) if verdict == "undecided"]
        again = await ask([cases[place] for place in open_places], attempt) if open_places else []
        for place, verdict in zip(open_places, again, strict=True):
            verdicts[place] = verdict if verdict != "error" else "undecided"
    decided = [(p, v == "right") for p, v in zip(texts, verdicts, strict=True) if v in ("right", "wrong")]
    failed = verdicts.count("error")
    notes = _counted(
        {
            "pairs excluded: the judge's reply is neither 'same' nor 'different'": verdicts.count(
                "undecided"
            ),
            "pairs excluded: the judge has not answered": failed,
        }
    )
    metric = _share(JUDGE, decided, judge=judge, reason="the judge decided nothing")
    return EquivalenceMeasure([metric], notes, _different(decided), failed)


def by_similarity(
    pairs: Sequence[VariantPair], model: Embedder, *, show_progress: bool = False
) -> EquivalenceMeasure:
    """Compute the mean sentence similarity of originals and rephrasings, and the share of pairs above
    THRESHOLD. Returns both values in percent, as the paper prints similarities.
    """
    texts = [pair for pair in pairs if pair.kind == "text"]
    if not texts:
        reason = "sentence similarity compares texts; these pairs differ in their images"
        return EquivalenceMeasure([_null(SIMILARITY, reason), _null(SHARE, reason)])
    found = similarities([(pair.first, pair.second) for pair in texts], model, show_progress=show_progress)
    above = [(pair, cosine > THRESHOLD) for pair, cosine in zip(texts, found, strict=True)]
    metrics = [
        _mean(SIMILARITY, list(zip(texts, found, strict=True)), bounds=(-1, 1), graded=True),
        _share(SHARE, above),
    ]
    return EquivalenceMeasure(metrics, [f"sentence similarity by {model.name}"], _different(above))


def equivalence_report(
    folder: Path,
    pairs: Sequence[VariantPair],
    compared: int,
    measures: Mapping[str, EquivalenceMeasure],
    embedder: str | None,
) -> EquivalenceReport:
    return EquivalenceReport(
        str(folder),
        kind_of_folder(folder),
        len(pairs),
        compared,
        [metric for measure in measures.values() for metric in measure.metrics],
        [note for measure in measures.values() for note in measure.notes],
        {name: measure.different for name, measure in measures.items() if measure.different},
        embedder,
        sum(measure.unanswered for measure in measures.values()),
    )


def not_requested(name: str, how: str) -> EquivalenceMeasure:
    names = (SIMILARITY, SHARE) if name == SIMILARITY else (name,)
    return EquivalenceMeasure([_null(one, f"not requested: {how}") for one in names])


def _voted(verdicts: Sequence[Verdict]) -> bool:
    return any(one.verdict in ("right", "wrong") for one in verdicts)


def _same(verdicts: Sequence[Verdict]) -> bool | None:
    """Whether most humans call the pair the same; None for a tie, or without a decision."""
    winner = majority(one.verdict for one in verdicts if one.verdict in ("right", "wrong"))
    return None if winner is None else winner == "right"


def _share(name: str, decided: Sequence[tuple[VariantPair, bool]], **more: Any) -> MetricValue:
    return _mean(name, [(pair, float(same)) for pair, same in decided], **more)


def _mean(
    name: str,
    values: Sequence[tuple[VariantPair, float]],
    *,
    bounds: Range = (0, 1),
    graded: bool = False,
    judge: str | None = None,
    reason: str = "there is no pair",
) -> MetricValue:
    """The mean in percent with its 95 % CI between images."""
    from sightline.metrics.statistics import clustered_mean

    clustered = [(pair.cluster, value) for pair, value in values]
    mean = clustered_mean(name, clustered, reason=reason, bounds=bounds, graded=graded)
    return structs.replace(mean, judge=judge)


def _null(name: str, reason: str) -> MetricValue:
    return MetricValue(name, "all", None, 0, 0, reason=reason)


def _different(decided: Iterable[tuple[VariantPair, bool]]) -> list[tuple[str, str]]:
    return [(pair.group, pair.variant) for pair, same in decided if not same]


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [f"{words}: {count:,}" for words, count in counts.items() if count]


# -- The similarity of pairs of texts by an embedder

BATCH = 256
"""Pairs that are embedded at once."""


def similarities(
    pairs: Sequence[tuple[str, str]], model: Embedder, *, show_progress: bool = False
) -> list[float]:
    """Compute the cosine of the vectors of each pair.

    `pairs`: pairs of texts, none of them empty. Returns a number in -1 to 1 for each pair.
    """
    found: list[float] = []
    what = f"embedding ({model.name})"
    with progress(what, 2 * len(pairs), "texts", show_progress=show_progress) as advance:
        for first in range(0, len(pairs), BATCH):
            texts = [text for pair in pairs[first : first + BATCH] for text in pair]
            vectors = model.embed(texts)
            found += cosines((vectors[0::2] * vectors[1::2]).sum(axis=1)).tolist()
            advance(len(texts))
    return found


# -- Pairs of an original and a variant in a built folder: read and drawn

QUESTION = "equivalent"
"""The question of verdicts on pairs: `right` means the same, `wrong` means different."""


class VariantPair(Struct, frozen=True):
    """An original and one of its variants, with what differs between them: texts, or paths of images.

    `targets` are digests of group, variant and content of the two, so that a verdict does not apply to a pair
    that changed.
    """

    targets: tuple[str, str]
    group: str
    variant: str
    kind: Literal["text", "image"]
    first: str
    second: str
    cluster: str


def read_pairs(folder: Path) -> list[VariantPair]:
    path = folder / "groups.jsonl"
    if not path.is_file():
        raise UserError("contains no groups.jsonl", file=folder, expected="a folder of `sightline build`")
    pairs: list[VariantPair] = []
    digests: dict[str, str] = {}
    for name, lines in by_group(read_groups(path)).items():
        original = next((line for line in lines if line.variant == ORIGINAL), None)
        if original is None:
            expected = f"a line with variant '{ORIGINAL}' in each group"
            raise UserError("has no original to compare with", file=path, record=name, expected=expected)
        pairs += [_pair(original, line, folder, digests) for line in lines if line is not original]
    if not pairs:
        raise UserError("holds originals alone", file=path, expected="at least one variant")
    return pairs


def draw_pairs(pairs: Sequence[VariantPair], count: int, seed: int) -> list[VariantPair]:
    """Draw pairs, at most one per group."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for place, pair in enumerate(pairs):
        by_name[pair.group].append(place)
    draw = random.Random(f"{QUESTION} {seed}")
    names = draw.sample(list(by_name), min(count, len(by_name)))
    return [pairs[place] for place in sorted(draw.choice(by_name[name]) for name in names)]


def kind_of_folder(folder: Path) -> str:
    return read_manifest(folder).kind if (folder / MANIFEST).is_file() else ""


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
        json_digest(
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
