"""Training: what changes and what does not, going on after a stop, and bad input."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any

import pytest

if None in (find_spec("torch"), find_spec("transformers"), find_spec("peft")):
    pytest.skip("needs the extra 'adapter'", allow_module_level=True)

import torch
from msgspec.structs import replace
from PIL import Image

from sightline.adapter.attach import attach
from sightline.adapter.batch import IGNORED, Maker, compose
from sightline.adapter.examples import read_examples, split
from sightline.adapter.kinds import BiLstm, Kind, Lora, Prefix
from sightline.adapter.loss import cross_entropy, disagreement
from sightline.adapter.run import Trained, Training, train_adapter
from sightline.adapter.saved import read_settings, read_weights
from sightline.adapter.train import Recipe, Step, Trainer, answer_logits
from sightline.adapter.validate import Validation
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.models.local.load import load
from sightline.models.local.model import LocalModel

Folder = Callable[[str], Path]
KINDS: dict[str, Kind] = {"bilstm": BiLstm(hidden=6), "prefix": Prefix(), "lora": Lora(rank=2)}
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
def test_the_adapter_learns_and_the_model_does_not_change(
    name: str, kind: str, folder: Folder, data: Path, tmp_path: Path
) -> None:
    before = hashlib.sha256((folder(name) / "model.safetensors").read_bytes()).hexdigest()
    recipe = {"steps": 25, "rate": 0.02 if kind != "prefix" else 0.3}
    trained, steps, _ = _train(
        _training(folder(name), data, tmp_path / "out", adapter=KINDS[kind], recipe=recipe, every=25)
    )
    first, last = (sum(step.loss for step in part) / 5 for part in (steps[:5], steps[-5:]))
    assert last < first
    assert len(trained.validations) == 2
    assert hashlib.sha256((folder(name) / "model.safetensors").read_bytes()).hexdigest() == before
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


@pytest.mark.parametrize("loss", ["ce", "ce+consistency"])
def test_stopped_anywhere_it_ends_at_the_same_weights(
    loss: Any, folder: Folder, data: Path, tmp_path: Path
) -> None:
    whole = _training(
        folder("llava"), data, tmp_path / "whole", adapter=BiLstm(hidden=6), recipe={"loss": loss}
    )
    _train(whole)
    parted = _training(
        folder("llava"), data, tmp_path / "parted", adapter=BiLstm(hidden=6), recipe={"loss": loss}
    )
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
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("parted", "whole")]
    for log in logs:
        entries = [json.loads(line) for line in log]
        assert [entry["step"] for entry in entries if "validation" in entry] == [0, 2, 4, 6]
        assert [entry["step"] for entry in entries] == list(range(7))
    assert not (tmp_path / "parted" / "state.pt").exists()


def test_accumulated_or_remembered_it_learns_the_same(folder: Folder, data: Path, tmp_path: Path) -> None:
    ways = {"one": {}, "parts": {"recipe": {"batch": 4, "accumulate": 3}}, "forgetful": {"room": 0}}
    ways["one"] = {"recipe": {"batch": 4}}
    ways["forgetful"] |= {"recipe": {"batch": 4}}
    for name, more in ways.items():
        _train(_training(folder("llava"), data, tmp_path / name, adapter=BiLstm(hidden=6), **more))
    one, parts, forgetful = (read_weights(tmp_path / name) for name in ways)
    for name, weight in one.items():
        assert torch.allclose(parts[name], weight, atol=1e-5), name
        assert torch.equal(forgetful[name], weight)


@pytest.mark.parametrize("name", ["llava", "blip2_t5"])
def test_the_loss_is_the_model_s_own_on_the_answer_s_tokens(name: str, folder: Folder, data: Path) -> None:
    """Against transformers' loss on one example at a time, with labels on the answer alone."""
    plain = LocalModel(folder(name), name="hf/tiny")
    loaded = load(plain.checkpoint, plain.args)
    attached = attach(loaded, BiLstm(prefix=0, hidden=3))
    maker = Maker(attached.loaded, "auto", room=0, longest=20)
    ready = [maker.make(one) for group in read_examples([data], {})[:4] for one in group]
    batch = compose(attached.loaded, ready)
    ours = cross_entropy(answer_logits(attached, batch), batch.targets).item()
    total = 0.0
    for one in ready:
        alone = compose(attached.loaded, [one])
        if name == "blip2_t5":
            labels = alone.targets
            inputs = {key: value for key, value in alone.inputs.items() if key != "decoder_input_ids"}
            said = loaded.model(**inputs, labels=labels)
        else:
            ids = torch.cat((alone.inputs["input_ids"], torch.tensor([[one.answer[-1]]])), dim=1)
            labels = ids.clone()
            labels[:, : one.prompt.tokens] = IGNORED
            inputs = {**alone.inputs, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
            said = loaded.model(**inputs, labels=labels)
        total += said.loss.item() * len(one.answer)
    assert ours == pytest.approx(total, rel=1e-5)


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
        UserError, match=r"the training diverges: the loss is nan at step 4, .* at first.*smaller --rate"
    ):
        _train(calm)
    assert (tmp_path / "out" / "state.pt").read_bytes() == before
    assert not (tmp_path / "out" / "adapter.json").exists()


@pytest.mark.parametrize(("losses", "diverges"), [([3.0] * 30, False), ([3.0] * 20 + [8.0] * 20, True)])
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
        with pytest.raises(UserError, match=r"the training diverges: the loss is 8 at step \d+, 3 at first"):
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
    with pytest.raises(UserError, match="shows a picture of the training"):
        _train(_training(folder("llava"), files[0], tmp_path / "out", test=[str(files[1])]))


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
    with pytest.raises(UserError, match="no group has two variants"):
        _train(_training(folder("llava"), data, tmp_path / "out", without={"wording": ["r1", "r2"]}))


def test_another_training_in_the_same_folder_is_refused(folder: Folder, data: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        _train(_training(folder("llava"), data, tmp_path / "out"), stopped_in=3)
    with pytest.raises(UserError, match=r"field rate: another training was begun here \(found 0.02\)"):
        _train(_training(folder("llava"), data, tmp_path / "out", recipe={"rate": 0.01}))
    _train(_training(folder("llava"), data, tmp_path / "out"))
    with pytest.raises(UserError, match="holds an adapter already"):
        _train(_training(folder("llava"), data, tmp_path / "out"))


def test_the_command_trains_and_run_uses_it(
    folder: Folder, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, model = tmp_path / "adapter", f"hf/{folder('llava')}"
    words = ["adapter", "train", "--model", model, "--data", str(data.parent), "--out", str(out), "--quiet"]
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
    assert "parameters, trained on" in capsys.readouterr().out
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


def _counts(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["adapter", "show", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_size_for_a_model_is_told_from_its_configuration_alone(
    folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_bytes((folder("llava") / "config.json").read_bytes())
    for kind, size in (("bilstm", None), ("prefix", 3 * 32), ("lora", None)):
        found = _counts(["--model", f"hf/{tmp_path}", "--kind", kind], capsys)
        plain = LocalModel(folder("llava"), name="hf/tiny")
        weights = attach(
            load(plain.checkpoint, plain.args), {"bilstm": BiLstm(), "prefix": Prefix(), "lora": Lora()}[kind]
        ).weights
        assert (
            found["adapter"]
            == sum(weight.numel() for weight in weights.values())
            == (size or found["adapter"])
        )
        assert found["width"] == 32


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"recipe": {"steps": 0}}, "--steps is too small"),
        ({"recipe": {"accumulate": 0}}, "--accumulate is too small"),
        ({"recipe": {"rate": -1.0}}, "--rate and --consistency must be above 0"),
        ({"recipe": {"consistency": 2.0}}, "--consistency has no effect with --loss ce"),
        ({"adapter": Prefix(prefix=0)}, "--set prefix is too small"),
        ({"held_out": 1.5}, "--held-out is no share"),
        ({"held_out": 0, "embedder": "all-MiniLM-L6-v2"}, "--embedder has no effect"),
        ({"model_args": {"adapter": "old"}}, "trained on a model without one"),
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
