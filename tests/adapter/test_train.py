"""Training: what changes and what does not, going on after a stop, and bad input."""

from __future__ import annotations

import hashlib
import json
import resource
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

if None in (find_spec("torch"), find_spec("transformers"), find_spec("peft")):
    pytest.skip("needs the extra 'adapter'", allow_module_level=True)

import torch
from msgspec.structs import replace
from PIL import Image

import sightline
from sightline.adapter.attach import Attached, attach
from sightline.adapter.batch import IGNORED, Maker, Ready, compose
from sightline.adapter.checkpoint import Checkpoint
from sightline.adapter.examples import Example, read_examples, split
from sightline.adapter.kinds import BiLstm, Kind, Lora, Prefix
from sightline.adapter.loss import cross_entropy, disagreement
from sightline.adapter.run import Trained, Training, train_adapter
from sightline.adapter.saved import read_settings, read_weights
from sightline.adapter.train import Recipe, Step, Trainer, answer_logits
from sightline.adapter.validate import Validation
from sightline.cli.main import main
from sightline.errors import SurroundingsError, UserError
from sightline.models.local.load import load
from sightline.models.local.model import LocalModel

Folder = Callable[[str], Path]
KINDS: dict[str, Kind] = {"bilstm": BiLstm(hidden=6), "prefix": Prefix(), "lora": Lora(rank=2)}
ARCHITECTURES = ("llava", "blip2", "blip2_t5", "instructblip", "qwen2_vl", "paligemma", "idefics3")
ANSWERS = ("a cat", "a red dog", "blue", "no")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Eight groups of three wordings about four pictures, the answers of two lengths."""
    return _write(tmp_path / "data", seed=0)


def _write(folder: Path, seed: int) -> Path:
    folder.mkdir()
    lines = []
    for number in range(8):
        picture = f"{number % 4}.png"
        Image.new("RGB", (40, 40), (60 * (number % 4), 255 - 60 * (number % 4), 50 * seed)).save(
            folder / picture
        )
        for variant, prompt in (
            ("original", "?"),
            ("r1", "what is this"),
            ("r2", "what a dog"),
            ("r3", "is it the cat"),
        ):
            lines.append(
                {
                    "group": f"g{number}",
                    "variant": variant,
                    "images": [picture],
                    "prompt": prompt,
                    "references": [ANSWERS[number % 4]],
                    "labels": {"wording": variant},
                }
            )
    (folder / "groups.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "groups.jsonl"


def _training(model: Path, data: Path, out: Path, **more: Any) -> Training:
    recipe = {"steps": 6, "batch": 2, "rate": 0.02, "seed": 5, **more.pop("recipe", {})}
    return Training(
        model=f"hf/{model}",
        data=[str(data)],
        out=str(out),
        recipe=Recipe(**recipe),
        **{"every": 2, "held_out": 0.25, **more},
    )


def _train(
    training: Training, *, stopped_in: int | None = None
) -> tuple[Trained, list[Step], list[Validation]]:
    """The whole training, or, with KeyboardInterrupt, as far as the step that Ctrl-C is pressed in."""
    steps: list[Step] = []
    seen: list[Validation] = []
    stop = Event()

    def tell(step: Step, validation: Validation | None) -> None:
        steps.append(step)
        seen.extend([validation] if validation else [])
        if step.number + 1 == stopped_in:
            stop.set()

    return train_adapter(training, tell, stop=stop), steps, seen


def _digest(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name.startswith("adapter")
    }


@pytest.mark.parametrize("name", ["llava", "blip2", "blip2_t5", "qwen2_vl"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_adapter_learns(name: str, kind: str, folder: Folder, data: Path, tmp_path: Path) -> None:
    recipe = {"steps": 25, "rate": 0.02 if kind != "prefix" else 0.3}
    trained, steps, _ = _train(
        _training(folder(name), data, tmp_path / "out", adapter=KINDS[kind], recipe=recipe, every=25)
    )
    first, last = (sum(step.loss for step in part) / 5 for part in (steps[:5], steps[-5:]))
    assert last < first
    assert len(trained.validations) == 2
    assert trained.groups == 6
    assert read_settings(tmp_path / "out").training["loss"] == "ce"


@pytest.mark.parametrize("kind", KINDS)
def test_no_weight_of_the_model_moves_by_a_bit(kind: str, folder: Folder, data: Path) -> None:
    plain = LocalModel(folder("llava"), name="hf/tiny")
    attached = attach(load(plain.checkpoint, plain.args), KINDS[kind])
    own = set(map(id, attached.weights.values()))
    parameters = dict(attached.loaded.model.named_parameters())
    base = {name: weight.clone() for name, weight in parameters.items() if id(weight) not in own}
    first = {name: weight.clone() for name, weight in attached.weights.items()}
    maker = Maker(attached.loaded, "auto", room=10**9, longest=20)
    trainer = Trainer(attached, maker, read_examples([data], {}), Recipe(steps=4, batch=3, rate=0.05))
    assert [step.number for step in trainer.steps()] == [1, 2, 3, 4]
    assert len(base) > 20
    assert all(torch.equal(parameters[name], weight) for name, weight in base.items())
    assert not any(torch.equal(attached.weights[name], weight) for name, weight in first.items())


@pytest.mark.parametrize(
    ("name", "kind", "loss"),
    [
        ("llava", "bilstm", "ce"),
        ("llava", "bilstm", "ce+consistency"),
        ("llava", "lora", "ce"),
        ("blip2_t5", "prefix", "ce"),
    ],
)
def test_stopped_anywhere_it_ends_at_the_same_weights(
    name: str, kind: str, loss: Any, folder: Folder, data: Path, tmp_path: Path
) -> None:
    whole, parted = (
        _training(folder(name), data, tmp_path / way, adapter=KINDS[kind], recipe={"loss": loss})
        for way in ("whole", "parted")
    )
    _train(whole)
    with pytest.raises(KeyboardInterrupt):
        _train(parted, stopped_in=3)
    # As kill -9 leaves it: the steps since the last checkpoint are lost.
    died: list[int] = []

    def die(step: Step, _: Validation | None) -> None:
        died.append(step.number)
        if step.number == 5:
            raise SystemExit(9)

    with pytest.raises(SystemExit):
        train_adapter(parted, die)
    assert died == [4, 5]
    _, steps, _ = _train(parted)
    assert [step.number for step in steps] == [5, 6]
    assert _digest(tmp_path / "parted") == _digest(tmp_path / "whole")
    logs = [(tmp_path / way / "log.jsonl").read_text().splitlines() for way in ("parted", "whole")]
    for log in logs:
        entries = [json.loads(line) for line in log]
        assert [entry["step"] for entry in entries if "validation" in entry] == [0, 2, 4, 6]
        assert [entry["step"] for entry in entries] == list(range(7))
    assert not (tmp_path / "parted" / "state.pt").exists()


def test_remembered_or_made_anew_it_learns_the_same(folder: Folder, data: Path, tmp_path: Path) -> None:
    for room in (0, 10**9):
        _train(_training(folder("llava"), data, tmp_path / str(room), adapter=BiLstm(hidden=6), room=room))
    assert read_weights(tmp_path / "0").keys() == read_weights(tmp_path / str(10**9)).keys()
    for name, weight in read_weights(tmp_path / "0").items():
        assert torch.equal(read_weights(tmp_path / str(10**9))[name], weight)


@pytest.mark.parametrize("loss", ["ce", "ce+consistency"])
@pytest.mark.parametrize("parts", [2, 3, 5, 9])
def test_a_step_in_several_passes_has_the_loss_and_the_gradients_of_one(
    parts: int, loss: Any, folder: Folder, data: Path
) -> None:
    """Not by the weights that come of it: Adam takes no notice of a gradient that is too large throughout."""
    groups = read_examples([data], {})
    # Groups of two and of three, with answers of several lengths.
    groups = [group[number % 2 :] for number, group in enumerate(groups)]

    def stepped(accumulate: int) -> tuple[Step, dict[str, torch.Tensor]]:
        attached = _attached(folder("llava"), BiLstm(hidden=6))
        recipe = Recipe(steps=9, batch=5, rate=1e-3, loss=loss, consistency=3.0, accumulate=accumulate)
        trainer = Trainer(attached, _maker(attached), groups, recipe)
        step = next(trainer.steps())
        return step, {name: _gradient(weight) for name, weight in attached.weights.items()}

    (one, whole), (other, summed) = stepped(1), stepped(parts)
    assert (other.loss, other.apart) == pytest.approx((one.loss, one.apart), rel=1e-5)
    assert one.apart > 1e-4
    for name, gradient in whole.items():
        assert gradient.abs().max() > 0, name
        assert torch.allclose(summed[name], gradient, rtol=1e-4, atol=1e-5 * float(gradient.abs().max())), (
            name
        )


def _attached(model: Path, kind: Kind) -> Attached:
    """The model with an adapter, the same each time."""
    plain = LocalModel(model, name="hf/tiny")
    loaded = load(plain.checkpoint, plain.args)
    torch.manual_seed(2)
    return attach(loaded, kind)


def _maker(attached: Attached) -> Maker:
    return Maker(attached.loaded, "auto", room=0, longest=20)


def _gradient(weight: torch.nn.Parameter) -> torch.Tensor:
    assert weight.grad is not None
    return weight.grad.clone()


def test_the_rate_falls_linearly_to_zero(folder: Folder, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As transformers' linear schedule: where all gradients are one, Adam's steps are as long as the rate."""
    from transformers import get_linear_schedule_with_warmup

    attached = _attached(folder("llava"), Prefix())
    (vectors,) = attached.weights.values()

    def learn(*_: object) -> tuple[float, float]:
        vectors.grad = torch.ones_like(vectors)
        return 1.0, 0.0

    monkeypatch.setattr(Trainer, "_learn", learn)
    other = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    schedule = get_linear_schedule_with_warmup(other, 0, 5)  # type: ignore[no-untyped-call]
    recipe = Recipe(steps=5, batch=1, rate=0.5)
    before = vectors.detach().clone()
    for _ in Trainer(attached, _maker(attached), read_examples([data], {}), recipe).steps():
        moved = (before - vectors.detach()).mean().item()
        assert moved == pytest.approx(schedule.get_last_lr()[0], rel=1e-4)
        before = vectors.detach().clone()
        other.step()
        schedule.step()
    assert schedule.get_last_lr() == [0]


def test_an_epoch_shows_every_group_once_in_an_order_of_its_own(folder: Folder, data: Path) -> None:
    shown: dict[int, list[str]] = {}
    groups = read_examples([data], {})
    attached = _attached(folder("llava"), Prefix())
    for seed in (1, 2):

        class Recording(Maker):
            def make(self, example: Example) -> Ready:
                shown.setdefault(seed, []).append(example.request.key)  # noqa: B023 - called in this turn
                return super().make(example)

        maker = Recording(attached.loaded, "auto", room=10**9, longest=20)
        # Eight groups, three a step: epochs end within a step.
        recipe = Recipe(steps=8, batch=3, rate=1e-3, seed=seed)
        list(Trainer(attached, maker, groups, recipe).steps())
    orders = [keys[first : first + 24] for keys in shown.values() for first in (0, 24, 48)]
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(orders[0]))}
    assert len(set(orders[0])) == 24
    assert len(set(map(tuple, orders))) == len(orders) == 6


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_loss_is_the_model_s_own_on_the_answer_s_tokens(name: str, folder: Folder, data: Path) -> None:
    """Against transformers' loss on one example at a time, with labels on the answer alone."""
    attached = _attached(folder(name), BiLstm(prefix=0, hidden=3))
    loaded, maker = attached.loaded, _maker(attached)
    ready = [maker.make(one) for group in read_examples([data], {})[:4] for one in group]
    batch = compose(loaded, ready)
    ours = cross_entropy(answer_logits(attached, batch), batch.targets).item()
    total = 0.0
    for one in ready:
        if loaded.is_seq2seq:
            alone = compose(loaded, [one])
            inputs = {key: value for key, value in alone.inputs.items() if key != "decoder_input_ids"}
            said = loaded.model(**inputs, labels=alone.targets)
        else:
            # The last token of an answer is not read; the one after it is put there in its place.
            inputs = compose(loaded, [one._replace(answer=[*one.answer, loaded.pad])]).inputs
            labels = inputs["input_ids"].clone()
            labels[:, : one.prompt.tokens] = IGNORED
            assert labels[labels != IGNORED].tolist() == one.answer
            said = loaded.model(**inputs, labels=labels)
        total += said.loss.item() * len(one.answer)
    assert ours == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_batch_has_the_loss_and_the_gradients_of_its_examples(
    name: str, folder: Folder, data: Path
) -> None:
    """What shorter prompts and answers are filled up with has no part in either, adapter and all."""
    attached = _attached(folder(name), BiLstm(hidden=6))
    maker = _maker(attached)
    ready = [maker.make(one) for group in read_examples([data], {})[:4] for one in group]
    assert len({one.prompt.tokens for one in ready}) > 1 < len({len(one.answer) for one in ready})

    def learned(batches: list[list[Ready]]) -> tuple[float, dict[str, torch.Tensor]]:
        attached.loaded.model.zero_grad()
        for weight in attached.weights.values():
            weight.grad = None
        total = 0.0
        for rows in batches:
            batch = compose(attached.loaded, rows)
            loss = cross_entropy(answer_logits(attached, batch), batch.targets)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        return total, {key: _gradient(weight) for key, weight in attached.weights.items()}

    (together, gradients), (alone, summed) = learned([ready]), learned([[one] for one in ready])
    assert together == pytest.approx(alone, rel=1e-5)
    for key, gradient in gradients.items():
        scale = float(gradient.abs().max())
        assert scale > 0, key
        assert torch.allclose(summed[key], gradient, rtol=1e-3, atol=1e-4 * scale), key


def test_the_disagreement_is_the_mean_divergence_of_pairs() -> None:
    torch.manual_seed(0)
    logits = torch.randn(5, 4, 7)
    targets = torch.full((5, 4), IGNORED)
    for row, places in enumerate(((1, 2), (0, 1), (2, 3), (0, 3), (1, 2))):
        targets[row, list(places)] = torch.tensor([3, 2]) if row != 3 else torch.tensor([5, 5])
    from torch.distributions import Categorical, kl_divergence

    def said(row: int) -> Categorical:
        return Categorical(logits=logits[row][targets[row] != IGNORED])

    first = [kl_divergence(said(a), said(b)).mean() for a in (0, 1, 2) for b in (0, 1, 2) if a != b]
    expected = torch.stack(first).mean()
    # Row 3 should give another answer than row 4, so that group has nothing to compare.
    found = disagreement(logits, targets, [range(3), range(3, 5)])
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    assert disagreement(logits, targets, [range(3, 5)]).item() == 0


def test_a_disk_that_is_full_loses_no_checkpoint(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, {"seed": 1})
    checkpoint.begin()
    checkpoint.write({"weights": torch.zeros(10)})
    before = (tmp_path / "state.pt").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
        with pytest.raises(SurroundingsError, match=r"state\.pt: cannot be written"):
            checkpoint.write({"weights": torch.zeros(10**6)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "state.pt").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"state.pt", "log.jsonl"}


def test_a_checkpoint_is_written_from_the_weights_and_not_from_a_copy(tmp_path: Path) -> None:
    weights = torch.arange(8 * 2**20, dtype=torch.float32)
    checkpoint = Checkpoint(tmp_path, {"seed": 1})
    checkpoint.begin()
    tracemalloc.start()
    try:
        checkpoint.write({"weights": weights})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < weights.nbytes / 4
    state = Checkpoint(tmp_path, {"seed": 1}).read()
    assert state is not None
    assert torch.equal(state["weights"], weights)


def test_training_is_said_to_begin_once_the_data_are_checked(
    folder: Folder, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int]] = []

    @contextmanager
    def progress(title: str, total: int, unit: str, *, done: int = 0, shown: bool) -> Iterator[Any]:
        assert shown
        told.append((title, done))

        def advance(more: int) -> None:
            told[-1] = (title, told[-1][1] + more)

        yield advance

    monkeypatch.setattr("sightline.adapter.run.progress", progress)
    training = _training(folder("llava"), data, tmp_path / "out", adapter=Prefix())
    with pytest.raises(UserError, match="--max-target"):
        train_adapter(replace(training, longest=1), progress_shown=True)
    assert told == [("checking", 0)]
    stop = Event()
    with pytest.raises(KeyboardInterrupt):
        train_adapter(training, lambda *_: stop.set(), stop=stop, progress_shown=True)
    assert told[1:] == [("checking", 24), ("training", 1)]
    train_adapter(training, progress_shown=True)
    assert told[3:] == [("checking", 24), ("training", 6)]


def test_a_change_of_the_frozen_model_is_an_error(
    folder: Folder, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Trainer._learn

    def meddle(self: Trainer, *given: Any) -> tuple[float, float]:
        with torch.no_grad():
            self._attached.loaded.model.lm_head.weight[0] += 1
        return learn(self, *given)

    monkeypatch.setattr(Trainer, "_learn", meddle)
    with pytest.raises(RuntimeError, match="frozen model has changed"):
        _train(_training(folder("llava"), data, tmp_path / "out", adapter=Prefix()))
    assert not (tmp_path / "out" / "adapter.json").exists()


def test_a_loss_that_diverges_stops_at_its_step_and_the_last_checkpoint_is_kept(
    folder: Folder, data: Path, tmp_path: Path
) -> None:
    calm = _training(folder("llava"), data, tmp_path / "out", adapter=Prefix())
    with pytest.raises(KeyboardInterrupt):
        _train(calm, stopped_in=3)
    state = torch.load(tmp_path / "out" / "state.pt")
    state["state"]["weights"]["vectors"] += torch.inf
    torch.save(state, tmp_path / "out" / "state.pt")
    before = (tmp_path / "out" / "state.pt").read_bytes()
    with pytest.raises(
        UserError, match=r"the training diverges: the loss is no number at step 4; expected a smaller --rate"
    ):
        _train(calm)
    assert (tmp_path / "out" / "state.pt").read_bytes() == before
    assert not (tmp_path / "out" / "adapter.json").exists()


def test_a_weight_that_is_no_number_is_what_the_training_is_said_to_diverge_by(
    folder: Folder, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached = _attached(folder("llava"), Prefix())
    (vectors,) = attached.weights.values()

    def learn(*_: object) -> tuple[float, float]:
        vectors.grad = torch.full_like(vectors, torch.inf)
        return 1.0, 0.0

    monkeypatch.setattr(Trainer, "_learn", learn)
    recipe = Recipe(steps=5, batch=1, rate=0.5)
    with pytest.raises(UserError, match="the training diverges: a weight is no number after step 1;"):
        list(Trainer(attached, _maker(attached), read_examples([data], {}), recipe).steps())


@pytest.mark.parametrize(
    ("losses", "diverges"),
    [
        ([3.0] * 30, False),
        ([3.0] * 20 + [8.0] * 20, True),
        # What the last step alone came to says nothing against it.
        ([3.0] * 20 + [8.0] * 18 + [30.0, 1.0], True),
    ],
)
def test_a_loss_that_rises_far_above_where_it_began_diverges(
    losses: list[float], diverges: bool, folder: Folder, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = LocalModel(folder("llava"), name="hf/tiny")
    attached = attach(load(plain.checkpoint, plain.args), Prefix())
    maker = Maker(attached.loaded, "auto", room=0, longest=20)
    recipe = Recipe(steps=len(losses), batch=1, rate=0.01)
    trainer = Trainer(attached, maker, read_examples([data], {}), recipe)
    said = iter(losses)
    monkeypatch.setattr(Trainer, "_learn", lambda *_: (next(said), 0.0))
    if diverges:
        said_so = r"diverges: over 20 steps the loss is 3 at first and (7\.\d+) up to step \d+;"
        with pytest.raises(UserError, match=said_so):
            list(trainer.steps())
    else:
        assert len(list(trainer.steps())) == len(losses)


def test_groups_of_one_picture_are_on_one_side(data: Path) -> None:
    learned, held = split(read_examples([data], {}), 0.25, seed=1)
    sides = [
        {picture.digest for group in side for one in group for picture in one.request.pictures.values()}
        for side in (learned, held)
    ]
    assert (len(learned), len(held)) == (6, 2)
    assert not sides[0] & sides[1]


def test_lines_with_a_label_are_left_out_and_a_label_that_no_line_has_is_told(data: Path) -> None:
    groups = read_examples([data], {"wording": ["r2"]})
    assert {len(group) for group in groups} == {2}
    with pytest.raises(UserError, match="--without wording=r9: no line has that label"):
        read_examples([data], {"wording": ["r9"]})


def test_what_a_test_shows_must_not_be_trained_on(folder: Folder, data: Path, tmp_path: Path) -> None:
    other = _write(tmp_path / "other", seed=1)
    _train(_training(folder("llava"), data, tmp_path / "out", adapter=Prefix(), test=[str(other)]))
    (tmp_path / "other" / "0.png").write_bytes((data.parent / "2.png").read_bytes())
    with pytest.raises(
        UserError, match=r"record g0/original: shows a picture of the training, there as g2/original"
    ):
        _train(_training(folder("llava"), data, tmp_path / "again", test=[str(other)]))


def test_pictures_that_a_builder_made_of_one_source_are_the_same(folder: Folder, tmp_path: Path) -> None:
    Image.effect_noise((64, 64), 80).convert("RGB").save(tmp_path / "photo.png")
    sources = tmp_path / "sources.jsonl"
    sources.write_text(json.dumps({"id": "a", "image": "photo.png", "references": ["noise"]}))
    for name, kind in (("one", "jpeg"), ("two", "blur")):
        words = ["build", "perturb", str(sources), "--kind", kind, "--out", str(tmp_path / name), "--quiet"]
        assert main(words) == 0
    files = [tmp_path / name / "groups.jsonl" for name in ("one", "two")]
    training = _training(folder("llava"), files[0], tmp_path / "out", adapter=Prefix())
    with pytest.raises(UserError, match="shows a picture of the training"):
        _train(replace(training, test=[str(files[1])]))
    # The run knows it by the manifest alone: the other folder's pictures are other files.
    _train(replace(training, held_out=0))
    options: dict[str, Any] = {"set": {"embedder": "none"}, "gen": {"max_tokens": 2}}
    options |= {"model": training.model, "store": str(tmp_path / "s.db")}
    task, adapter = f"groups:{files[1]}", {"adapter": str(tmp_path / "out")}
    run = sightline.run(task, **options, model_args=adapter)
    (note,) = [note for note in run.result.notes if "was made from" in note]
    assert note.startswith(f"1 of the 1 pictures that {files[1].parent} was made from were shown to")
    assert run.result.errors == 0
    (files[1].parent / "manifest.json").write_text("{}")
    for args in ({}, adapter):
        assert not sightline.run(task, **options, model_args=args).result.notes


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"references": []}, r"record g0/r1, field references: has no reference"),
        ({"references": ["a dog " * 40]}, r"record .*g0 r1: the answer has \d+ tokens.*--max-target"),
        ({"images": ["gone.png"]}, r"record g0/r1: a picture cannot be used: .*gone.png"),
        ({"prompt": "a " * 300}, r"record .*g0 r1: the model cannot be asked this: .*no room"),
    ],
)
def test_bad_lines_are_named_before_any_step(
    change: dict[str, Any], said: str, folder: Folder, data: Path, tmp_path: Path
) -> None:
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    lines[1] |= change
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError, match=said):
        _train(_training(folder("llava"), data, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_groups_of_one_variant_have_nothing_to_be_consistent_about(
    folder: Folder, data: Path, tmp_path: Path
) -> None:
    kept = [line for line in data.read_text().splitlines() if '"r2"' not in line and '"r3"' not in line]
    with pytest.raises(UserError, match="--without leaves no group two variants; expected fewer"):
        _train(_training(folder("llava"), data, tmp_path / "out", without={"wording": ["r1", "r2"]}))
    data.write_text("\n".join(kept))
    with pytest.raises(UserError, match=r"no group has two variants.*sightline build"):
        _train(_training(folder("llava"), data, tmp_path / "out", without={"wording": ["r1"]}))


def test_the_same_groups_twice_are_refused(folder: Folder, data: Path, tmp_path: Path) -> None:
    twice = [str(data), f"{data.parent}/../{data.parent.name}/{data.name}"]
    training = replace(_training(folder("llava"), data, tmp_path / "out"), data=twice)
    with pytest.raises(UserError, match=r"groups\.jsonl: --data names it twice"):
        _train(training)


def test_a_training_that_did_not_help_and_settings_that_look_odd_are_told(
    folder: Folder, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = _training(folder("llava"), data, tmp_path / "good", adapter=Prefix())
    with monkeypatch.context() as patched:
        losses = iter([3.0, 4.0, 2.0, 2.9, 3.0, 2.0, 2.5, 3.25])
        patched.setattr(
            "sightline.adapter.run.validate", lambda *_, **__: Validation(next(losses), 0.0, 0.0, None)
        )
        helped, _, _ = _train(training)
        harmed, _, _ = _train(replace(training, out=str(tmp_path / "bad")))
    assert helped.notes == ()
    (note,) = harmed.notes
    assert "no lower than without the adapter (3.0000 before, 3.2500 after): another --rate" in note
    data.write_text("".join(line for line in data.open() if '"g0"' in line or '"g1"' in line))
    few, _, _ = _train(
        replace(training, out=str(tmp_path / "few"), held_out=0.1, recipe=Recipe(rate=0.1, batch=3, steps=1))
    )
    assert few.groups == 2
    assert [note.partition(" is more than")[0].partition(":")[0] for note in few.notes] == [
        "--batch 3",
        "nothing was held out",
    ]


@pytest.mark.parametrize(
    ("out", "said"),
    [("file", "file: is a file; expected a folder for --out"), ("/proc/x", "/proc/x: .*expected .*--out")],
)
def test_a_folder_that_cannot_be_had_is_told_before_any_step(
    out: str, said: str, folder: Folder, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("sightline.adapter.run.validate", lambda *_, **__: pytest.fail("was begun"))
    with pytest.raises(UserError, match=said):
        _train(_training(folder("llava"), data, tmp_path / out))


def test_another_training_in_the_same_folder_is_refused(folder: Folder, data: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        _train(_training(folder("llava"), data, tmp_path / "out"), stopped_in=3)
    with pytest.raises(UserError, match=r"field rate: another training was begun here \(found 0.02\)"):
        _train(_training(folder("llava"), data, tmp_path / "out", recipe={"rate": 0.01}))
    with pytest.raises(UserError, match=r"field model: another training was begun here"):
        _train(_training(folder("llava"), data, tmp_path / "out", model_args={"template": "plain"}))
    _train(_training(folder("llava"), data, tmp_path / "out"))
    with pytest.raises(UserError, match="holds an adapter already"):
        _train(_training(folder("llava"), data, tmp_path / "out"))


def test_the_command_trains_and_run_uses_it(
    folder: Folder, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, model = tmp_path / "adapter", f"hf/{folder('llava')}"
    words = ["adapter", "train", "--model", model, "--data", str(data.parent), "--out", str(out)]
    words += [
        "--steps",
        "4",
        "--kind",
        "bilstm",
        "--set",
        "hidden=6",
        "--rate",
        "0.01",
        "--without",
        "wording=r3",
    ]
    assert main(words) == 0
    told = capsys.readouterr()
    assert "parameters, trained on" in told.out
    assert "step 4: loss" in told.err
    other = _write(tmp_path / "other", seed=1)
    run = ["run", f"groups:{other}", "--model", model, "--quiet", "--store", str(tmp_path / "s.db")]
    run += ["--set", "embedder=none", "--gen", "max_tokens=4", "--json"]
    identities = []
    for more in ([], ["--adapter", str(out)]):
        assert main([*run, *more]) == 0
        identities.append(json.loads(capsys.readouterr().out)["model_identity"])
    assert identities[1].startswith(f"{identities[0]} adapter ")
    assert main(["adapter", "show", str(out)]) == 0
    assert "hidden" in capsys.readouterr().out
    assert main([*words, "--set", "depth=3"]) == 2
    assert main([*run[:3], "baseline/chance", "--adapter", str(out)]) == 2


@pytest.mark.parametrize("stopped_in", ["the first validation", "training"])
def test_a_stop_tells_what_is_kept_and_what_is_begun_is_no_adapter_yet(
    stopped_in: str,
    folder: Folder,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        # What SIGTERM does: the step under way is not finished.
        raise KeyboardInterrupt

    place = "validate" if stopped_in == "the first validation" else "Trainer.steps"
    monkeypatch.setattr(f"sightline.adapter.run.{place}", interrupt)
    out, model = tmp_path / "adapter", f"hf/{folder('llava')}"
    words = ["adapter", "train", "--model", model, "--data", str(data), "--out", str(out), "--kind", "prefix"]
    assert main([*words, "--quiet"]) == 130
    told = capsys.readouterr().err
    assert "answered" not in told
    assert main(["adapter", "show", str(out)]) == 2
    shown = capsys.readouterr().err
    if stopped_in == "training":
        assert told == (
            f"interrupted; the last checkpoint is kept in {out}, the same command goes on from there\n"
        )
        assert f"{out}: holds a training that is not at its end; expected the same" in shown
    else:
        assert told == "interrupted; no checkpoint was written yet, the same command begins anew\n"
        assert "lacks adapter.json" in shown


def _counts(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["adapter", "show", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_size_for_a_model_is_told_from_its_configuration_alone(
    folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_bytes((folder("llava") / "config.json").read_bytes())
    kinds: dict[str, Kind] = {"bilstm": BiLstm(), "prefix": Prefix(), "lora": Lora()}
    for name, kind in kinds.items():
        found = _counts(["--model", f"hf/{tmp_path}", "--kind", name], capsys)
        weights = _attached(folder("llava"), kind).weights
        assert found["adapter"] == sum(weight.numel() for weight in weights.values())
        assert found["width"] == 32


def test_of_a_model_of_the_hub_config_json_alone_is_fetched(
    folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    constants: Any = import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    config = (folder("llava") / "config.json").read_bytes()
    with _hub({"/org/tiny/resolve/main/config.json": config}) as (address, asked):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        words = ["--kind", "prefix", "--model"]
        assert _counts([*words, "hf/org/tiny"], capsys) == _counts([*words, f"hf/{folder('llava')}"], capsys)
        assert {path for path in asked if path.startswith("/org")} == {"/org/tiny/resolve/main/config.json"}
        assert main(["adapter", "show", *words, "hf/org/other"]) == 2
    assert "'org/other' cannot be had from the Hugging Face Hub" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*") if path.is_symlink()] == ["config.json"]


@contextmanager
def _hub(files: Mapping[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """A server with these files, as the Hub has them: its address, and the paths that it is asked for."""
    asked: list[str] = []

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            content = files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.send_header("ETag", f'"{hashlib.sha1(content or b"").hexdigest()}"')
            self.send_header("X-Repo-Commit", "0" * 40)
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(files.get(self.path, b""))

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"recipe": {"steps": 0}}, "--steps is too small"),
        ({"recipe": {"accumulate": 0}}, "--accumulate is too small"),
        ({"recipe": {"rate": -1.0}}, "--rate and --consistency must be above 0"),
        ({"recipe": {"consistency": 2.0}}, "--consistency has no effect with --loss ce"),
        ({"adapter": Prefix(prefix=0)}, "--set prefix is too small"),
        (
            {"adapter": Prefix(prefix=100_000)},
            r"the adapter's prefix 100,000; expected --set prefix=\d+ at most",
        ),
        ({"held_out": 1.5}, "--held-out is no share"),
        ({"held_out": 0, "embedder": "all-MiniLM-L6-v2"}, "--embedder has no effect"),
        ({"model_args": {"adapter": "old"}}, "trained on a model without one"),
        ({"model": "openai/gpt-4o"}, "openai/gpt-4o is no local model"),
    ],
)
def test_numbers_out_of_range_and_options_without_effect_are_refused(
    change: dict[str, Any], said: str, folder: Folder, data: Path, tmp_path: Path
) -> None:
    training = _training(folder("llava"), data, tmp_path / "out", recipe=change.pop("recipe", {}))
    with pytest.raises(UserError, match=said):
        _train(replace(training, **change))
    assert not (tmp_path / "out").exists()


def test_examples_with_and_without_pictures_do_not_mix(folder: Folder, data: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    lines[1]["images"] = []
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError, match="some examples show a picture and others none"):
        _train(_training(folder("llava"), data, tmp_path / "out"))


@pytest.mark.parametrize("name", ["llava", "paligemma", "qwen2_vl", "idefics3"])
def test_no_place_of_an_answer_sees_what_follows_it(name: str, folder: Folder, data: Path) -> None:
    plain = LocalModel(folder(name), name="hf/tiny")
    attached = attach(load(plain.checkpoint, plain.args), Prefix())
    maker = Maker(attached.loaded, "auto", room=0, longest=20)
    ready = maker.make(read_examples([data], {})[1][0])
    assert len(ready.answer) > 2
    first, other = (
        answer_logits(attached, compose(attached.loaded, [ready._replace(answer=answer)]))[0]
        for answer in (ready.answer, [*ready.answer[:-2], 7, ready.answer[-1]])
    )
    assert torch.equal(first[:-1], other[:-1])
    assert not torch.equal(first[-1], other[-1])
