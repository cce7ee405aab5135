"""Trains and tests adapters in one process: the model is loaded once, and every image is encoded once."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event
from typing import Any, NamedTuple

import torch
from msgspec.structs import replace

from sightline.adapter.architectures import AdapterConfig, Lora, Prefix
from sightline.adapter.attach import AdaptedModel, merge_lora, with_adapter
from sightline.adapter.batch import EncodedExample, ExampleEncoder, Template
from sightline.adapter.examples import VALIDATION_TOKENS, ExampleGroups, TrainingExample
from sightline.adapter.trainer import DivergedError, Recipe, Trainer, TrainingStep, validate
from sightline.models.embedder import embedder
from sightline.models.local.encode import collate, to_device, with_encoded
from sightline.models.local.load import Loaded, load
from sightline.models.local.model import LocalModel
from sightline.models.registry import ModelOptions, resolve
from training.adapter.design import TASKS
from training.adapter.result_files import Held, TaskValues
from training.adapter.scenes import ONE_WORD_TEST, Scenes, TestGroup
from training.adapter.scoring import Embeddings, task_values

ROWS = 64
"""Answers in a forward pass of a test."""

CACHE_BYTES = 4 * 1024**3
TESTS = (*TASKS, ONE_WORD_TEST)


class TestedModel(NamedTuple):
    """The values of a test by its name, with the mean number of tokens of an answer and processor time."""

    tasks: Mapping[str, TaskValues]
    tokens: Mapping[str, float]
    seconds: float


class Workbench:
    """A loaded model with the encoded examples of the study."""

    def __init__(self, model: str, scenes: Scenes) -> None:
        """Load the model.

        Args:
            model: The name of a local model.
            scenes: The data, which exist.
        """
        local = resolve(model, ModelOptions())[0]
        assert isinstance(local, LocalModel)
        self._loaded = load(local.checkpoint, local.args)
        self._plain = self._encoder(self._loaded, local.args.template)
        # Its prompts begin with the placeholders of the vectors; all prefix kinds here have as many.
        self._prefixed = self._encoder(self.attach(Prefix(), 0).loaded, local.args.template)
        self._scenes = scenes
        self._embeddings = Embeddings(embedder().embed)
        self._tests: dict[str, list[TestGroup]] = {}

    def attach(self, kind: AdapterConfig, seed: int) -> AdaptedModel:
        """Attach a new adapter to a copy of the model.

        Args:
            kind: The kind of adapter.
            seed: The seed of its weights.

        Returns:
            The model with the adapter.
        """
        torch.manual_seed(seed)
        return with_adapter(replace(self._loaded, model=copy.deepcopy(self._loaded.model)), kind)

    def trainer(self, adapted: AdaptedModel, groups: ExampleGroups, recipe: Recipe) -> Trainer:
        """Prepare a training.

        Args:
            adapted: The model with the adapter.
            groups: The training set.
            recipe: The hyperparameters.

        Returns:
            The trainer.
        """
        return Trainer(adapted, self._encoder_for(adapted.loaded), groups, recipe)

    def held_out(self, adapted: AdaptedModel | None, groups: ExampleGroups) -> Held:
        """Validate on held-out groups.

        Args:
            adapted: The model with the adapter; None for the model alone.
            groups: The held-out set.

        Returns:
            The result.
        """
        model = adapted or AdaptedModel(self._loaded, {})
        found = validate(model, self._encoder_for(model.loaded), groups, None, batch=ROWS, stop=Event())
        return Held(round(found.loss, 4), round(found.acc, 4), round(found.agree, 4))

    def test(self, adapted: AdaptedModel | None, kind: AdapterConfig | None) -> TestedModel:
        """Test a model on all tasks; LoRA is merged into the model first.

        Args:
            adapted: The model with the adapter; None for the model alone.
            kind: The kind of adapter.

        Returns:
            The values.
        """
        began = time.process_time()
        loaded = adapted.loaded if adapted is not None else self._loaded
        if isinstance(kind, Lora):
            merge_lora(loaded)
        tasks, tokens = {}, {}
        for name in TESTS:
            groups = self._tests.setdefault(name, self._scenes.test(name))
            texts, lengths = self.answers(loaded, [one for group in groups for one in group.examples])
            of_groups = iter(texts)
            answers = [[next(of_groups) for _ in group.examples] for group in groups]
            tasks[name] = task_values(groups, answers, _task(name), self._embeddings)
            tokens[name] = round(sum(lengths) / len(lengths), 2)
        return TestedModel(tasks, tokens, round(time.process_time() - began, 1))

    @torch.inference_mode()
    def answers(self, loaded: Loaded, examples: Sequence[TrainingExample]) -> tuple[list[str], list[int]]:
        """Answer prompts greedily, like `sightline run`, with the images that are encoded already.

        Args:
            loaded: The model, with or without an adapter.
            examples: The prompts.

        Returns:
            The answers, and the number of tokens of each.
        """
        encoder = self._encoder_for(loaded)
        encoded = [encoder.encode(example) for example in examples]
        order = sorted(range(len(encoded)), key=lambda place: encoded[place].prompt.tokens)
        texts, lengths = [""] * len(encoded), [0] * len(encoded)
        for first in range(0, len(order), ROWS):
            places = order[first : first + ROWS]
            for place, row in zip(places, self._generate(loaded, [encoded[p] for p in places]), strict=True):
                texts[place] = loaded.processor.tokenizer.decode(row, skip_special_tokens=True).strip()
                lengths[place] = len(row)
        return texts, lengths

    def _encoder_for(self, loaded: Loaded) -> ExampleEncoder:
        return self._plain if loaded.prefix_vectors is None else self._prefixed

    @staticmethod
    def _encoder(loaded: Loaded, template: Template) -> ExampleEncoder:
        return ExampleEncoder(loaded, template, cache_bytes=CACHE_BYTES, max_answer_tokens=VALIDATION_TOKENS)

    def _generate(self, loaded: Loaded, batch: Sequence[EncodedExample]) -> Iterator[list[int]]:
        """The tokens of each answer, the end token included."""
        inputs: dict[str, Any] = to_device(collate([one.prompt for one in batch], loaded.pad), loaded)
        inputs = with_encoded(inputs, [one.features for one in batch if one.features is not None])
        if loaded.prefix_vectors is not None:
            loaded.prefix_vectors.activate(inputs["attention_mask"])
        tokens = loaded.model.generate(
            **inputs,
            do_sample=False,
            max_new_tokens=VALIDATION_TOKENS,
            pad_token_id=loaded.pad,
            eos_token_id=sorted(loaded.ends) or None,
        )
        for row in tokens[:, inputs["input_ids"].shape[1] :].tolist():
            end = next((at + 1 for at, token in enumerate(row) if token in loaded.ends), len(row))
            yield row[:end]


def run_steps(trainer: Trainer, after_step: Callable[[TrainingStep], None] = lambda _: None) -> bool:
    """Run the remaining steps of a training.

    Args:
        trainer: What trains.
        after_step: Called after each step.

    Returns:
        Whether the training ended; False if it diverged. The weights are then those of its last step.
    """
    try:
        for step in trainer.steps():
            after_step(step)
    except DivergedError:
        return False
    return True


def _task(name: str) -> Any:
    return name.partition(",")[0]
