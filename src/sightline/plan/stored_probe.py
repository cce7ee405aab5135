"""The record of a probe that the store keeps for each run, and its position in the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.engine.store import Store
from sightline.formats.asked import image_paths, prompt_text
from sightline.images import BadImage
from sightline.types import ImageFile, Labels, Probe

_NUMBER_BITS = 20


class StoredProbe(Struct, frozen=True, omit_defaults=True):
    """A probe as a run stores it: what judging and counting need, without the answer.

    `key` is the answer's key in the store. The first probe of a group holds the group's `partners`: for each
    other setting that a metric reads, the stored probes of that setting for the same sample. `error` says why
    the probe cannot be asked; the store then has no answer under `key`. If `pooled`, all draws of the probe
    form one group. `evidence` lists the images, untransformed, that a judge of the answer sees. `context`,
    `images` and `prompt` are those of the answer's line in answers.jsonl, empty in partners.
    `sample_digest` is that of the sample, the same in every setting; '' in runs of earlier versions.
    It has more than 15 fields because it is an `Outcome` without its answer.
    """

    sample: str
    variant: str
    draw: int
    key: str
    cluster: str
    question: str
    labels: Labels = field(default_factory=dict)
    references: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    partners: Mapping[str, tuple[StoredProbe, ...]] = field(default_factory=dict)
    error: str | None = None
    pooled: bool = False
    evidence: tuple[ImageFile, ...] = ()
    context: str = ""
    images: tuple[str, ...] = ()
    prompt: str = ""
    sample_digest: str = ""


def stored_probe(
    probe: Probe,
    draw: int,
    key: str,
    cluster: str,
    sample_digest: str = "",
    *,
    error: str | None = None,
    evidence: tuple[ImageFile, ...] = (),
) -> StoredProbe:
    """The stored record of one draw of a probe.

    Args:
        draw: The number of the repeat, from 0.
        error: Why the probe cannot be asked; None if it can.
    """
    return StoredProbe(
        sample=probe.sample,
        variant=probe.variant,
        draw=draw,
        key=key,
        cluster=cluster,
        question=probe.question,
        labels=probe.labels,
        references=probe.references,
        options=probe.options,
        error=error,
        pooled=probe.draws > 0,
        evidence=evidence,
        context=probe.context,
        images=image_paths(probe.messages),
        prompt=prompt_text(probe.messages),
        sample_digest=sample_digest,
    )


def judge_images(probe: Probe, files: Mapping[str, ImageFile | BadImage]) -> tuple[ImageFile, ...]:
    """The images that a judge of an answer to this probe sees."""
    if not probe.evidence:
        return ()
    images = (files.get(image.path) for image in probe.evidence)
    return tuple(replace(file, transform="") for file in images if isinstance(file, ImageFile))


def stored_groups(
    probes: Mapping[str, Sequence[Probe]],
    draws: Sequence[int],
    store: Callable[[str, Probe, int], StoredProbe],
) -> Iterator[StoredProbe]:
    """The stored probes of one sample, group by group; the first of each group holds the partners."""
    own, *partners = probes
    for members in grouped(probes[own], draws):
        first, *rest = (store(own, probe, draw) for probe, draw in members)
        linked = {
            # Metrics read the answers of partners, and nobody reads what they were asked.
            setting: tuple(
                replace(store(setting, probe, draw), context="", images=(), prompt="", sample_digest="")
                for probe, draw in partner_draws(probes[setting], first.draw)
            )
            for setting in partners
        }
        yield replace(first, partners=linked) if linked else first
        yield from rest


def grouped(probes: Sequence[Probe], draws: Sequence[int]) -> list[list[tuple[Probe, int]]]:
    """The groups of a sample: one per draw, or, where draws are pooled, one per probe."""
    if any(probe.draws for probe in probes):
        return [[(probe, draw) for draw in draws] for probe in probes]
    return [[(probe, draw) for probe in probes] for draw in draws]


def partner_draws(probes: Iterable[Probe], draw: int) -> Iterator[tuple[Probe, int]]:
    """The draws of a partner setting that a group is compared with."""
    for probe in probes:
        yield from ((probe, number) for number in (range(probe.draws) if probe.draws else (draw,)))


def read_stored_probes(
    store: Store, run: int, without: Callable[[int], bool] | None = None
) -> Iterator[StoredProbe]:
    """The probes of a run, in the order of its samples.

    Args:
        without: Whether a sample is left out, by its index in the run; None leaves none out.
    """
    decoder = msgspec.json.Decoder(StoredProbe)
    for position, body in store.runs.numbered_probes(run):
        if without is None or not without(sample_index(position)):
            yield decoder.decode(body)


def probe_position(sample: int, number: int) -> int:
    """The position of a probe in its run, which orders probes by sample.

    Args:
        sample: The index of the sample, from 0.
    """
    return (sample << _NUMBER_BITS) + number


def sample_index(position: int) -> int:
    """The index of the sample at a position: the inverse of `probe_position`."""
    return position >> _NUMBER_BITS
