"""Training: what changes, what does not, and which notes it gives."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if None in (find_spec("torch"), find_spec("transformers"), find_spec("peft")):
    pytest.skip("needs the extra 'adapter'", allow_module_level=True)

import torch
from msgspec.structs import replace
from tests.adapter.training import (
    KINDS,
    Folder,
    attached_to,
    encoder_of,
    run_training,
    small_training,
)

from sightline.adapter.architectures import BiLstm, Prefix
from sightline.adapter.attach import with_adapter
from sightline.adapter.batch import EncodedExample, ExampleEncoder
from sightline.adapter.examples import TrainingExample, read_examples
from sightline.adapter.saved_adapter import read_metadata, read_weights
from sightline.adapter.trainer import Recipe, Trainer, Validation
from sightline.errors import UserError
from sightline.models.local.load import load
from sightline.models.local.model import LocalModel


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [*(("llava", kind) for kind in KINDS), *((name, "bilstm") for name in ("blip2", "blip2_t5", "qwen2_vl"))],
)
def test_the_adapter_learns(name: str, kind: str, folder: Folder, data: Path, tmp_path: Path) -> None:
    recipe = {"steps": 25, "rate": 0.02 if kind != "prefix" else 0.3}
    trained, steps, _ = run_training(
        small_training(folder(name), data, tmp_path / "out", adapter=KINDS[kind], recipe=recipe, every=25)
    )
    first, last = (sum(step.loss for step in part) / 5 for part in (steps[:5], steps[-5:]))
    assert last < first
    assert len(trained.validations) == 2
    assert trained.groups == 6
    assert read_metadata(tmp_path / "out").training["loss"] == "ce"


@pytest.mark.parametrize("kind", KINDS)
def test_no_weight_of_the_frozen_model_changes(kind: str, folder: Folder, data: Path) -> None:
    plain = LocalModel(folder("llava"), name="hf/tiny")
    attached = with_adapter(load(plain.checkpoint, plain.args), KINDS[kind])
    own = set(map(id, attached.weights.values()))
    parameters = dict(attached.loaded.model.named_parameters())
    base = {name: weight.clone() for name, weight in parameters.items() if id(weight) not in own}
    first = {name: weight.clone() for name, weight in attached.weights.items()}
    encoder = ExampleEncoder(attached.loaded, "auto", cache_bytes=10**9, max_answer_tokens=20)
    trainer = Trainer(attached, encoder, read_examples([data], {}), Recipe(steps=4, batch=3, rate=0.05))
    assert [step.number for step in trainer.steps()] == [1, 2, 3, 4]
    assert len(base) > 20
    assert all(torch.equal(parameters[name], weight) for name, weight in base.items())
    assert not any(torch.equal(attached.weights[name], weight) for name, weight in first.items())


@pytest.mark.slow
def test_the_cache_of_examples_does_not_change_the_result(folder: Folder, data: Path, tmp_path: Path) -> None:
    for cache_bytes in (0, 10**9):
        run_training(
            small_training(
                folder("llava"),
                data,
                tmp_path / str(cache_bytes),
                adapter=BiLstm(hidden=6),
                cache_bytes=cache_bytes,
            )
        )
    assert read_weights(tmp_path / "0").keys() == read_weights(tmp_path / str(10**9)).keys()
    for name, weight in read_weights(tmp_path / "0").items():
        assert torch.equal(read_weights(tmp_path / str(10**9))[name], weight)


def test_the_rate_falls_linearly_to_zero(folder: Folder, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As transformers' linear schedule. With gradients of 1, Adam's steps equal the learning rate."""
    from transformers import get_linear_schedule_with_warmup

    attached = attached_to(folder("llava"), Prefix())
    (vectors,) = attached.weights.values()

    def learn(*_: object) -> tuple[float, float]:
        vectors.grad = torch.ones_like(vectors)
        return 1.0, 0.0

    monkeypatch.setattr(Trainer, "_learn", learn)
    other = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    schedule = get_linear_schedule_with_warmup(other, 0, 5)  # type: ignore[no-untyped-call]
    recipe = Recipe(steps=5, batch=1, rate=0.5)
    before = vectors.detach().clone()
    for _ in Trainer(attached, encoder_of(attached), read_examples([data], {}), recipe).steps():
        moved = (before - vectors.detach()).mean().item()
        assert moved == pytest.approx(schedule.get_last_lr()[0], rel=1e-4)
        before = vectors.detach().clone()
        other.step()
        schedule.step()
    assert schedule.get_last_lr() == [0]


def test_an_epoch_uses_every_group_once_in_its_own_order(folder: Folder, data: Path) -> None:
    shown: dict[int, list[str]] = {}
    groups = read_examples([data], {})
    attached = attached_to(folder("llava"), Prefix())
    for seed in (1, 2):

        class Recording(ExampleEncoder):
            def encode(self, example: TrainingExample) -> EncodedExample:
                shown.setdefault(seed, []).append(example.request.key)  # noqa: B023 - called in this turn
                return super().encode(example)

        encoder = Recording(attached.loaded, "auto", cache_bytes=10**9, max_answer_tokens=20)
        # Eight groups, three a step: epochs end within a step.
        recipe = Recipe(steps=8, batch=3, rate=1e-3, seed=seed)
        list(Trainer(attached, encoder, groups, recipe).steps())
    orders = [keys[first : first + 24] for keys in shown.values() for first in (0, 24, 48)]
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(orders[0]))}
    assert len(set(orders[0])) == 24
    assert len(set(map(tuple, orders))) == len(orders) == 6


def test_a_change_of_the_frozen_model_is_an_error(
    folder: Folder, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Trainer._learn

    def meddle(self: Trainer, *given: Any) -> tuple[float, float]:
        with torch.no_grad():
            self._adapted.loaded.model.lm_head.weight[0] += 1
        return learn(self, *given)

    monkeypatch.setattr(Trainer, "_learn", meddle)
    with pytest.raises(RuntimeError, match="frozen model has changed"):
        run_training(small_training(folder("llava"), data, tmp_path / "out", adapter=Prefix()))
    assert not (tmp_path / "out" / "adapter.json").exists()


def test_a_loss_that_diverges_stops_at_its_step_and_the_last_checkpoint_is_kept(
    folder: Folder, data: Path, tmp_path: Path
) -> None:
    calm = small_training(folder("llava"), data, tmp_path / "out", adapter=Prefix())
    with pytest.raises(KeyboardInterrupt):
        run_training(calm, stopped_in=3)
    state = torch.load(tmp_path / "out" / "state.pt")
    state["state"]["weights"]["vectors"] += torch.inf
    torch.save(state, tmp_path / "out" / "state.pt")
    before = (tmp_path / "out" / "state.pt").read_bytes()
    with pytest.raises(
        UserError, match=r"the training diverges: the loss is not finite at step 4; expected a smaller --rate"
    ):
        run_training(calm)
    assert (tmp_path / "out" / "state.pt").read_bytes() == before
    assert not (tmp_path / "out" / "adapter.json").exists()


def test_a_weight_that_is_not_finite_is_a_divergence(
    folder: Folder, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached = attached_to(folder("llava"), Prefix())
    (vectors,) = attached.weights.values()

    def learn(*_: object) -> tuple[float, float]:
        vectors.grad = torch.full_like(vectors, torch.inf)
        return 1.0, 0.0

    monkeypatch.setattr(Trainer, "_learn", learn)
    recipe = Recipe(steps=5, batch=1, rate=0.5)
    with pytest.raises(UserError, match="the training diverges: a weight is not finite after step 1;"):
        list(Trainer(attached, encoder_of(attached), read_examples([data], {}), recipe).steps())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("losses", "diverges"),
    [
        ([3.0] * 30, False),
        ([3.0] * 20 + [8.0] * 20, True),
        # The loss of the last step alone does not matter.
        ([3.0] * 20 + [8.0] * 18 + [30.0, 1.0], True),
    ],
)
def test_a_loss_far_above_its_initial_value_is_a_divergence(
    losses: list[float], diverges: bool, folder: Folder, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = LocalModel(folder("llava"), name="hf/tiny")
    attached = with_adapter(load(plain.checkpoint, plain.args), Prefix())
    encoder = ExampleEncoder(attached.loaded, "auto", cache_bytes=0, max_answer_tokens=20)
    recipe = Recipe(steps=len(losses), batch=1, rate=0.01)
    trainer = Trainer(attached, encoder, read_examples([data], {}), recipe)
    said = iter(losses)
    monkeypatch.setattr(Trainer, "_learn", lambda *_: (next(said), 0.0))
    if diverges:
        said_so = r"diverges: the mean loss over 20 steps rose from 3 to (7\.\d+) up to step \d+;"
        with pytest.raises(UserError, match=said_so):
            list(trainer.steps())
    else:
        assert len(list(trainer.steps())) == len(losses)


def test_notes_report_a_useless_training_and_unusual_settings(
    folder: Folder, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = small_training(folder("llava"), data, tmp_path / "good", adapter=Prefix())
    with monkeypatch.context() as patched:
        losses = iter([3.0, 4.0, 2.0, 2.9, 3.0, 2.0, 2.5, 3.25])
        patched.setattr(
            "sightline.adapter.training.validate", lambda *_, **__: Validation(next(losses), 0.0, 0.0, None)
        )
        helped, _, _ = run_training(training)
        harmed, _, _ = run_training(replace(training, out=str(tmp_path / "bad")))
    assert helped.notes == ()
    (note,) = harmed.notes
    assert "no lower than without the adapter (3.0000 before, 3.2500 after): try another --rate" in note
    data.write_text("".join(line for line in data.open() if '"g0"' in line or '"g1"' in line))
    few, _, _ = run_training(
        replace(training, out=str(tmp_path / "few"), held_out=0.1, recipe=Recipe(rate=0.1, batch=3, steps=1))
    )
    assert few.groups == 2
    assert [note.partition(" is more than")[0].partition(":")[0] for note in few.notes] == [
        "--batch 3",
        "no group was held out",
    ]


@pytest.mark.parametrize(
    ("out", "said"),
    [("file", "file: is a file; expected a folder for --out"), ("/proc/x", "/proc/x: .*expected .*--out")],
)
def test_an_unusable_output_folder_is_an_error_before_the_first_step(
    out: str, said: str, folder: Folder, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("sightline.adapter.training.validate", lambda *_, **__: pytest.fail("was begun"))
    with pytest.raises(UserError, match=said):
        run_training(small_training(folder("llava"), data, tmp_path / out))
