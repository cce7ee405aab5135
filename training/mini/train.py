"""Trains `mini` from scratch on synthetic scenes, on the CPU: `python -m training.mini.train --out FOLDER`.

A batch is a pure function of the seed and the step. A run that was killed continues from its last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from training.mini.checkpoint import (
    ANSWER,
    BOS,
    EOS,
    IMAGE,
    IMAGE_TOKENS,
    MEAN,
    PAD,
    SPREAD,
    model,
    save,
    tokenizer,
)
from training.mini.lessons import DENSE, SHARES, Lesson, lesson

HEAD = IMAGE_TOKENS + 1
IGNORED = -100
TOKEN = " by token"
LONG = tuple(f"{kind}{TOKEN}" for kind in ("describe fully", "list", "read"))
WARM_UP = 150
DENSE_STEPS = range(2000)
ADAM = 0.25
"""The learning rate of AdamW as a share of Muon's."""
DECAY = 0.4
"""The share of the steps at the end in which the learning rate falls to a hundredth."""


class LessonBatch(NamedTuple):
    """Images with their turns in one row; each turn attends to the image and to itself only.

    `pixels` uint8 (B, side, side, 3); all others (B, L): token ids, positions, the turn that a token belongs
    to (0 the image, -1 padding), targets (IGNORED for none), and the weight of a target's loss.
    """

    pixels: NDArray[np.uint8]
    ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    segments: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: NDArray[np.float32]
    kinds: list[list[str]]


def pack(lessons: list[Lesson], words: PreTrainedTokenizerFast, most: int) -> LessonBatch:
    """Collate lessons; turns that would make a row longer than `most` tokens are left out."""
    rows = [_row(one, words, most) for one in lessons]
    length = most
    fillers = (PAD, 0, -1, IGNORED, 0.0)
    stacked = [
        np.array([row[column] + [filler] * (length - len(row[column])) for row in rows])
        for column, filler in enumerate(fillers)
    ]
    pixels = np.stack([one.image for one in lessons])
    ids, positions, segments, targets, weights = stacked
    kinds = [row[5] for row in rows]
    return LessonBatch(pixels, ids, positions, segments, targets, weights.astype(np.float32), kinds)


def _row(one: Lesson, words: PreTrainedTokenizerFast, most: int) -> tuple[Any, ...]:
    ids, positions, segments = [BOS, *[IMAGE] * IMAGE_TOKENS], list(range(HEAD)), [0] * HEAD
    targets, weights, kinds = [IGNORED] * HEAD, [0.0] * HEAD, []
    for turn in one.turns:
        prompt = [*words(turn.prompt, add_special_tokens=False).input_ids, ANSWER]
        answer = [*words(turn.answer, add_special_tokens=False).input_ids, EOS]
        length = len(prompt) + len(answer)
        if len(ids) + length > most:
            continue
        kinds.append(turn.kind)
        ids += prompt + answer
        positions += range(HEAD, HEAD + length)
        segments += [len(kinds)] * length
        targets += [IGNORED] * len(prompt) + answer
        weights += [0.0] * len(prompt) + [turn.weight] * len(answer)
    return ids, positions, segments, targets, weights, kinds


def pixel_values(pixels: NDArray[np.uint8], device: torch.device) -> torch.Tensor:
    """Normalize pixels as the image processor does: float32 (B, 3, side, side)."""
    return (torch.from_numpy(pixels).to(device).permute(0, 3, 1, 2).float() / 255 - MEAN) / SPREAD


def logits(mini: Any, batch: LessonBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (N, vocabulary) and targets (N,) of all positions with a target."""
    device = mini.device
    segments = torch.from_numpy(batch.segments).to(device)
    same = (segments[:, :, None] == segments[:, None, :]) | (segments[:, None, :] == 0)
    length = segments.shape[1]
    mask = same & torch.ones(length, length, dtype=torch.bool, device=device).tril()
    hidden = mini.model(
        input_ids=torch.from_numpy(batch.ids).to(device),
        pixel_values=pixel_values(batch.pixels, device),
        attention_mask=mask[:, None],
        position_ids=torch.from_numpy(batch.positions).to(device),
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        use_cache=False,
    ).last_hidden_state
    targets = torch.from_numpy(batch.targets)[:, 1:].to(device)
    picked = targets != IGNORED
    return mini.lm_head(hidden[:, :-1][picked]), targets[picked]


def lessons_of(seed: int, step: int, count: int) -> list[Lesson]:
    """The lessons of a step."""
    random = Random(f"mini {seed} {step}")
    shares = DENSE if step in DENSE_STEPS else SHARES
    return [lesson(random, shares=shares) for _ in range(count)]


def produce_batches(
    seed: int, steps: range, count: int, words: PreTrainedTokenizerFast, most: int, queue: Any
) -> None:
    """Put the batches of these steps into a queue."""
    torch.set_num_threads(1)
    for step in steps:
        queue.put(pack(lessons_of(seed, step, count), words, most))


@torch.no_grad()
def examine(mini: Any, exam: list[LessonBatch]) -> dict[str, float]:
    """The share of exact answers by type of question, with greedy decoding."""
    mini.eval()
    right: dict[str, list[bool]] = defaultdict(list)
    for batch in exam:
        predicted, targets = logits(mini, batch)
        hits = (predicted.argmax(-1) == targets).cpu().numpy()
        rows, columns = np.nonzero(batch.targets[:, 1:] != IGNORED)
        turns = batch.segments[rows, columns + 1]
        for row, turn, hit in zip(rows.tolist(), turns.tolist(), hits.tolist(), strict=True):
            right[f"{batch.kinds[row][turn - 1]}{TOKEN}"].append(hit)
        whole: dict[tuple[int, int], bool] = defaultdict(lambda: True)
        for row, turn, hit in zip(rows.tolist(), turns.tolist(), hits.tolist(), strict=True):
            whole[row, turn] &= hit
        for (row, turn), hit in whole.items():
            right[batch.kinds[row][turn - 1]].append(hit)
    mini.train()
    reported = {kind: hits for kind, hits in right.items() if kind in LONG or not kind.endswith(TOKEN)}
    return {kind: round(float(np.mean(hits)), 3) for kind, hits in sorted(reported.items())}


def optimizers(mini: Any, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for inner matrices, AdamW for all other parameters."""
    inner: list[torch.nn.Parameter] = []
    table: list[torch.nn.Parameter] = []
    other: list[torch.nn.Parameter] = []
    for name, parameter in mini.named_parameters():
        if parameter.ndim == 2 and "embed" not in name and "lm_head" not in name:
            inner.append(parameter)
        else:
            (table if parameter.ndim > 1 else other).append(parameter)
    muon = torch.optim.Muon(inner, lr=rate, weight_decay=0.02, adjust_lr_fn="match_rms_adamw")
    adam = torch.optim.AdamW(
        [{"params": table, "weight_decay": 0.02}, {"params": other, "weight_decay": 0.0}],
        lr=rate * ADAM,
        betas=(0.9, 0.98),
    )
    return [muon, adam]


def rate_at(step: int, steps: int) -> float:
    """The factor of the learning rate: warm-up, plateau, linear decay."""
    return min(1.0, (step + 1) / WARM_UP) * min(1.0, (1 - step / steps) / DECAY + 0.01)


def batches_of(
    seed: int, steps: range, chosen: argparse.Namespace, words: PreTrainedTokenizerFast
) -> Iterator[LessonBatch]:
    """The batches of these steps, prepared by another process. Raises RuntimeError if that dies."""
    queue: Any = mp.Queue(4)
    args = (seed, steps, chosen.batch, words, chosen.most, queue)
    process = mp.Process(target=produce_batches, args=args, daemon=True)
    process.start()
    for _ in steps:
        while True:
            try:
                yield queue.get(timeout=10)
                break
            except Empty:
                if not process.is_alive():
                    raise RuntimeError("the process that prepares the lessons has died") from None


def learn(mini: Any, updaters: list[torch.optim.Optimizer], batch: LessonBatch, *, bf16: bool) -> float:
    """Train one step on a batch; returns its loss."""
    with torch.autocast(mini.device.type, torch.bfloat16, enabled=bf16):
        predicted, targets = logits(mini, batch)
    weights = torch.from_numpy(batch.weights[batch.targets != IGNORED]).to(mini.device)
    each = torch.nn.functional.cross_entropy(predicted.float(), targets, reduction="none")
    loss = (each * weights).sum() / weights.sum()
    for updater in updaters:
        updater.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(mini.parameters(), 1.0)
    for updater in updaters:
        updater.step()
    return loss.item()


def write_state(mini: Any, updaters: list[torch.optim.Optimizer], step: int, file: Path) -> None:
    """Write everything that the next step needs, atomically."""
    state = {
        "model": mini.state_dict(),
        "optimizers": [updater.state_dict() for updater in updaters],
        "step": step,
    }
    torch.save(state, file.with_suffix(".part"))
    file.with_suffix(".part").replace(file)


def read_state(mini: Any, updaters: list[torch.optim.Optimizer], file: Path) -> int:
    """Restore the last state if there is one; returns the next step."""
    if not file.exists():
        return 0
    state = torch.load(file, map_location=mini.device)
    mini.load_state_dict(state["model"])
    for updater, saved in zip(updaters, state["optimizers"], strict=True):
        updater.load_state_dict(saved)
    step: int = state["step"]
    return step


def options() -> argparse.Namespace:
    """Parse the command line; the defaults are those of the shipped model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=4500)
    parser.add_argument("--stop", type=int, help="stop after this step of them (default: the last)")
    parser.add_argument("--batch", type=int, default=36, help="images per step")
    parser.add_argument("--most", type=int, default=272, help="most tokens of a row")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--every", type=int, default=250, help="steps between checkpoints")
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def main() -> None:
    """Train, and write the model with its accuracy on held-out combinations."""
    chosen = options()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(chosen.seed)
    words = tokenizer()
    mini = model(len(words)).to(torch.device(chosen.device))  # type: ignore[arg-type]
    mini.train()
    updaters = optimizers(mini, chosen.rate)
    chosen.out.mkdir(parents=True, exist_ok=True)
    first = read_state(mini, updaters, chosen.out / "state.pt")
    steps = range(first, chosen.stop or chosen.steps)
    random = Random("mini exam")
    exam = [pack([lesson(random, exam=True) for _ in range(100)], words, 600) for _ in range(5)]
    began, losses = time.monotonic(), list[float]()
    for step, batch in zip(steps, batches_of(chosen.seed, steps, chosen, words), strict=True):
        for updater, share in zip(updaters, (1.0, ADAM), strict=True):
            for group in updater.param_groups:
                group["lr"] = chosen.rate * share * rate_at(step, chosen.steps)
        losses.append(learn(mini, updaters, batch, bf16=chosen.bf16))
        done = step + 1
        if done % 50 == 0 or done == steps.stop:
            pace = (time.monotonic() - began) / (done - first)
            print(done, f"loss {np.mean(losses[-50:]):.4f}", f"{pace:.2f} s per step", flush=True)
        if done % chosen.every == 0 or done == steps.stop:
            print(json.dumps(examine(mini, exam)), flush=True)
            write_state(mini, updaters, done, chosen.out / "state.pt")
    save(mini.cpu(), words, chosen.out / "model")
    print(f"{sum(path.stat().st_size for path in (chosen.out / 'model').iterdir()):,} bytes")


if __name__ == "__main__":
    main()
