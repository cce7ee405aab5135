"""Describes a data set: the samples and images of each label, and the length of its texts."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from msgspec import Struct

from sightline.benchmarks.base import Release
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.released import data_folder
from sightline.data.check import find_records
from sightline.data.pull import GROUPS, load_samples
from sightline.images import BadImage, inspect_image
from sightline.progress import progress
from sightline.scoring.text import AUXILIARIES, lexicon
from sightline.types import ImageRef, Sample, each_value


class LabelShare(Struct, frozen=True):
    """The number of samples and of distinct images with a value of a label.

    `percent` is the share of these images among all images with the label, or of the samples where there are
    no images. An image with several values counts for each.
    """

    samples: int
    images: int
    percent: float


class TextLength(Struct, frozen=True):
    """The number of texts of a kind, and their mean length in words (at white space) and characters."""

    texts: int
    words: float
    characters: float


class DataDescription(Struct, frozen=True):
    """The content of all splits of a data set together; a sample in two splits counts once.

    `splits` holds the number of samples of each split, `groups` that of the groups of a groups file. `images`
    counts distinct images. `unreadable_images` of them could not be read, so that distinct names count as
    distinct images. `lengths` maps the kind of text to its length.
    """

    benchmark: str
    folder: str
    splits: dict[str, int]
    groups: dict[str, int]
    samples: int
    images: int
    unreadable_images: int
    labels: dict[str, dict[str, LabelShare]]
    lengths: dict[str, TextLength]
    verbs: VerbCounts | None


def describe_data(
    release: Release, folder: Path | None, split: str | None = None, *, show_progress: bool = False
) -> DataDescription:
    """Describe one split or all splits of a data folder (II-Bench, Table 1; ConTextual, Table 2)."""
    records_found = find_records(release, folder, split)
    root = data_folder(folder, release.name, records_found[0].name)
    by_split = {records.split: load_samples(release, root, records.split) for records in records_found}
    samples = _merged(by_split.values())
    images = _image_names(samples, show_progress)
    texts = _texts(samples)
    benchmark = find_benchmark(release.name)
    for name in by_split:
        for kind, texts_of_kind in benchmark.extra_texts(root, name).items():
            texts.setdefault(kind, []).extend(texts_of_kind)
    return DataDescription(
        benchmark=release.name,
        folder=str(root),
        splits={name: len(each) for name, each in by_split.items()},
        groups={
            name: len({sample.record.group for sample in each})
            for name, each in by_split.items()
            if release.name == GROUPS
        },
        samples=len(samples),
        images=len({name for names in images for name in names}),
        unreadable_images=len({name for names in images for name in names if name.startswith("file ")}),
        labels=_labels(samples, images),
        lengths={kind: _length(some) for kind, some in texts.items() if some},
        verbs=count_verbs(texts["question"]) if benchmark.has_commands else None,
    )


def _merged(splits: Iterable[Sequence[Sample]]) -> list[Sample]:
    """The samples of all splits, each question about an image once, with the reference if a split has it.

    In ConTextual, val is a part of test.
    """
    merged: dict[object, Sample] = {}
    for samples in splits:
        # Equal samples of one split stay separate.
        repeats: Counter[object] = Counter()
        for sample in samples:
            content = (tuple(image.path for image in sample.images), sample.question)
            repeats[content] += 1
            earlier = merged.get((content, repeats[content]))
            if earlier is None or not earlier.references:
                merged[content, repeats[content]] = sample
    return list(merged.values())


def _image_names(samples: Sequence[Sample], show_progress: bool) -> list[list[str]]:
    """Names of the images of each sample: the digest of the content, or the path of an unreadable one."""
    names = []
    with progress("images", len(samples), "samples", show_progress=show_progress) as advance:
        for sample in samples:
            names.append([_image_name(image) for image in sample.images])
            advance(1)
    return names


def _image_name(image: ImageRef) -> str:
    try:
        return inspect_image(image, {}).digest
    except BadImage:
        return f"file {os.path.relpath(image.path, image.root or os.path.dirname(image.path))}"


def _labels(samples: Sequence[Sample], images: Sequence[Sequence[str]]) -> dict[str, dict[str, LabelShare]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    carriers: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for sample, names in zip(samples, images, strict=True):
        for label, value in sample.labels.items():
            for item in dict.fromkeys(each_value(value)):
                counts[label][item] += 1
                carriers[label][item].update(names)
    return {label: _shares(counts[label], carriers[label]) for label in counts}


def _shares(counts: Counter[str], carriers: Mapping[str, set[str]]) -> dict[str, LabelShare]:
    of = {value: len(images) for value, images in carriers.items()}
    parts = of if any(of.values()) else counts
    return {
        value: LabelShare(count, of[value], 100 * parts[value] / sum(parts.values()))
        for value, count in counts.most_common()
    }


def _texts(samples: Sequence[Sample]) -> dict[str, list[str]]:
    # References of multiple-choice questions are letters.
    free_form = [sample for sample in samples if not sample.options]
    return {
        "question": [sample.question for sample in samples],
        "option": [option for sample in samples for option in sample.options],
        "reference": [reference for sample in free_form for reference in sample.references],
    }


def _length(texts: Sequence[str]) -> TextLength:
    return TextLength(len(texts), fmean(len(text.split()) for text in texts), fmean(map(len, texts)))


# -- Counts the verbs that instructions begin with, and their direct nouns (ConTextual, Figure 3)


class VerbAndNoun(NamedTuple):
    """The verb of a command, and its direct noun in the singular; '' if it has none."""

    verb: str
    noun: str


class VerbCounts(Struct, frozen=True):
    """How many instructions are commands, how many are not, and how many distinct verbs the commands have.

    `top` lists the most frequent verbs with their counts, each with its most frequent nouns and their counts.
    """

    commands: int
    others: int
    different: int
    top: tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...]


def count_verbs(instructions: Iterable[str], *, verbs: int = 20, nouns: int = 4) -> VerbCounts:
    parsed = [verb_and_noun(instruction) for instruction in instructions]
    commands = [command for command in parsed if command is not None]
    counts = Counter(command.verb for command in commands)
    nouns_of = {
        verb: Counter(command.noun for command in commands if command.verb == verb and command.noun)
        for verb in counts
    }
    top = tuple(
        (verb, count, tuple(_most_common(nouns_of[verb], nouns)))
        for verb, count in _most_common(counts, verbs)
    )
    return VerbCounts(len(commands), len(parsed) - len(commands), len(counts), top)


def verb_and_noun(instruction: str) -> VerbAndNoun | None:
    """Find the verb and the direct noun of a command; None for a question and for a text whose verb is
    unclear.

    >>> verb_and_noun("Find out the advertisements with text in two colors.")
    VerbAndNoun(verb='find', noun='advertisement')
    >>> verb_and_noun("Which name is the seconds hand pointing to?")
    """
    words = _WORD.findall(instruction.replace("’", "'").lower())
    start = _start(words)
    if start is None:
        return None
    verb, rest = words[start], words[start + 1 :]
    while len(rest) > 1 and rest[0] in _JOINING and rest[1] not in _BEFORE_NOUNS:
        rest = rest[2:]  # 'Group and list the items': the first verb, the shared noun
    if rest and rest[0] in _PARTICLES:
        rest = rest[1:]
    return VerbAndNoun(verb, _singular(_head(rest)))


def _start(words: list[str]) -> int | None:
    """The index of a command's verb: the first word after words of courtesy or after a clause."""
    index = 0
    if words and words[0] in _CLAUSES:
        if "," not in words:
            return None
        index = words.index(",") + 1
    if words[index : index + 1] and words[index] in AUXILIARIES and words[index + 1 : index + 2] == ["you"]:
        index += 2
    while index < len(words) and words[index] in _COURTESIES:
        index += 1
    is_verb = index < len(words) and words[index].isalpha() and words[index] not in _NO_VERBS
    return index if is_verb else None


def _head(words: list[str]) -> str:
    """The last word of the noun phrase at the start of the words; '' if there is none."""
    head = ""
    for word in words:
        # 'the text written ...', but 'the projected shopping expenditure'
        follows = _is_participle(word, "ed") or (_is_participle(word, "ing") and head[-2:] != "ed")
        if word in _BETWEEN or not word[0].isalnum() or (head and (follows or word in _DETERMINERS)):
            break
        if word[0].isalpha() and word not in _BEFORE_NOUNS and not word.endswith(("'s", "s'", "ly")):
            head = word
    return head


def _is_participle(word: str, ending: str) -> bool:
    """Guess whether a word is a participle: 'depicted', but not 'red', 'speed', 'ring' or 'wing'."""
    longer = word.endswith(ending) and len(word) > len(ending) + 2 and not word.endswith("eed")
    return longer or (ending == "ed" and word in _PARTICIPLES)


def _singular(noun: str) -> str:
    if noun in _PLURALS:
        return _PLURALS[noun]
    for ending, single in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")):
        if noun.endswith(ending) and len(noun) > len(ending) + 1:
            return noun.removesuffix(ending) + single
    return noun.removesuffix("s") if not noun.endswith(("ss", "us", "is")) else noun


def _most_common(counts: Counter[str], limit: int) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]


_WORD = re.compile(r"[a-z][a-z]*(?:['-][a-z]+|(?<=s)')*|\d[\w.%:]*|[^\s\w]")

_QUESTIONS = lexicon("what which who whom whose when where why how")
_DETERMINERS = lexicon(
    """a an the this that these those my your his her its our their all any both each every either neither
    no some another such"""
)
_QUANTITIES = lexicon(
    """one two three four five six seven eight nine ten many much more most few fewer several other"""
)
_PREPOSITIONS = lexicon(
    """about above across after against along among amongst amid around as at before behind below beneath
    beside besides between beyond by despite during except for from in inside into like near of off on onto
    opposite outside over past per since than through throughout to toward towards under underneath until up
    upon versus via with within without regarding concerning according based given considering using"""
)
_LINKS = lexicon("and or but nor so if whether because while although though unless then not also")
_PRONOUNS = lexicon("i you he she it we they me him us them there here")
_PARTICIPLES = lexicon(
    """written shown drawn seen worn given made held known torn sold hidden spoken built found taken sent born
    met said put kept present visible"""
)
"""Participles, and adjectives after their noun, that no ending identifies."""

_JOINING = lexicon("and or")
_PARTICLES = lexicon("out up down off")
_COURTESIES = lexicon("please kindly briefly accurately")
_CLAUSES = _PREPOSITIONS | lexicon("if when while")
_BEFORE_NOUNS = _DETERMINERS | _QUANTITIES
_BETWEEN = _QUESTIONS | AUXILIARIES | _PREPOSITIONS | _LINKS | _PRONOUNS
_NO_VERBS = _BETWEEN | _BEFORE_NOUNS

_PLURALS = {
    "men": "man",
    "women": "woman",
    "people": "person",
    "children": "child",
    "feet": "foot",
    "teeth": "tooth",
    "series": "series",
    "clothes": "clothes",
    "lens": "lens",
    "movies": "movie",
    "cookies": "cookie",
}
