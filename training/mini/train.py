"""Trains `mini` from scratch on drawn scenes, on the CPU: `python -m training.mini.train --out FOLDER`.

A batch is a pure function of the seed and the step; a run that was killed goes on where its last checkpoint
was written.
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
"""The learning rate of what Muon does not train, as a share of Muon's."""
DECAY = 0.4
"""The share of the steps, at the end, over which the learning rate falls to a hundredth."""


class Batch(NamedTuple):
    """Images with their turns one after the other, each turn seeing the image and itself alone.

    `pixels` uint8 (B, side, side, 3); all others (B, L): token ids, positions, the turn that a token belongs
    to (0 the image, -1 padding), targets (IGNORED where none), the weight of a target's loss.
    """

    pixels: NDArray[np.uint8]
    ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    segments: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: NDArray[np.float32]
    kinds: list[list[str]]


def pack(lessons: list[Lesson], words: PreTrainedTokenizerFast, most: int) -> Batch:
    """Lessons as a batch; turns that would make a row longer than `most` tokens are left out."""
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
    return Batch(pixels, ids, positions, segments, targets, weights.astype(np.float32), kinds)


def _row(one: Lesson, words: PreTrainedTokenizerFast, most: int) -> tuple[Any, ...]:
    ids, positions, segments = [BOS, *[IMAGE] * IMAGE_TOKENS], list(range(HEAD)), [0] * HEAD
    targets, weights, kinds = [IGNORED] * HEAD, [0.0] * HEAD, []
    for turn in one.turns:
        asked = [*words(turn.prompt, add_special_tokens=False).input_ids, ANSWER]
        said = [*words(turn.answer, add_special_tokens=False).input_ids, EOS]
        length = len(asked) + len(said)
        if len(ids) + length > most:
            continue
        kinds.append(turn.kind)
        ids += asked + said
        positions += range(HEAD, HEAD + length)
        segments += [len(kinds)] * length
        targets += [IGNORED] * len(asked) + said
        weights += [0.0] * len(asked) + [turn.weight] * len(said)
    return ids, positions, segments, targets, weights, kinds


def pixel_values(pixels: NDArray[np.uint8], device: torch.device) -> torch.Tensor:
    """As the image processor makes them: float32 (B, 3, side, side)."""
    return (torch.from_numpy(pixels).to(device).permute(0, 3, 1, 2).float() / 255 - MEAN) / SPREAD


def logits(made: Any, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (N, vocabulary) and targets (N,) of all tokens that have one."""
    device = made.device
    segments = torch.from_numpy(batch.segments).to(device)
    same = (segments[:, :, None] == segments[:, None, :]) | (segments[:, None, :] == 0)
    length = segments.shape[1]
    mask = same & torch.ones(length, length, dtype=torch.bool, device=device).tril()
    hidden = made.model(
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
    return made.lm_head(hidden[:, :-1][picked]), targets[picked]


def lessons_of(seed: int, step: int, count: int) -> list[Lesson]:
    """The lessons of a step."""
    random = Random(f"mini {seed} {step}")
    shares = DENSE if step in DENSE_STEPS else SHARES
    return [lesson(random, shares=shares) for _ in range(count)]


def teach(seed: int, steps: range, count: int, words: PreTrainedTokenizerFast, most: int, queue: Any) -> None:
    """Put the batches of these steps in a queue."""
    torch.set_num_threads(1)
    for step in steps:
        queue.put(pack(lessons_of(seed, step, count), words, most))


@torch.no_grad()
def examine(made: Any, exam: list[Batch]) -> dict[str, float]:
    """The share of exact answers by type of question: greedy, as every token is the likeliest one."""
    made.eval()
    right: dict[str, list[bool]] = defaultdict(list)
    for batch in exam:
        found, targets = logits(made, batch)
        hits = (found.argmax(-1) == targets).cpu().numpy()
        rows, columns = np.nonzero(batch.targets[:, 1:] != IGNORED)
        turns = batch.segments[rows, columns + 1]
        for row, turn, hit in zip(rows.tolist(), turns.tolist(), hits.tolist(), strict=True):
            right[f"{batch.kinds[row][turn - 1]}{TOKEN}"].append(hit)
        whole: dict[tuple[int, int], bool] = defaultdict(lambda: True)
        for row, turn, hit in zip(rows.tolist(), turns.tolist(), hits.tolist(), strict=True):
            whole[row, turn] &= hit
        for (row, turn), hit in whole.items():
            right[batch.kinds[row][turn - 1]].append(hit)
    made.train()
    told = {kind: hits for kind, hits in right.items() if kind in LONG or not kind.endswith(TOKEN)}
    return {kind: round(float(np.mean(hits)), 3) for kind, hits in sorted(told.items())}


def optimizers(made: Any, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside, AdamW for all else."""
    inside: list[torch.nn.Parameter] = []
    table: list[torch.nn.Parameter] = []
    other: list[torch.nn.Parameter] = []
    for name, parameter in made.named_parameters():
        if parameter.ndim == 2 and "embed" not in name and "lm_head" not in name:
            inside.append(parameter)
        else:
            (table if parameter.ndim > 1 else other).append(parameter)
    muon = torch.optim.Muon(inside, lr=rate, weight_decay=0.02, adjust_lr_fn="match_rms_adamw")
    adam = torch.optim.AdamW(
        [{"params": table, "weight_decay": 0.02}, {"params": other, "weight_decay": 0.0}],
        lr=rate * ADAM,
        betas=(0.9, 0.98),
    )
    return [muon, adam]


def rate_at(step: int, steps: int) -> float:
    """The share of the learning rate: warm-up, a plateau, a linear fall."""
    return min(1.0, (step + 1) / WARM_UP) * min(1.0, (1 - step / steps) / DECAY + 0.01)


def taught(
    seed: int, steps: range, chosen: argparse.Namespace, words: PreTrainedTokenizerFast
) -> Iterator[Batch]:
    """The batches of these steps, made ahead by another process. Raises RuntimeError where that dies."""
    queue: Any = mp.Queue(4)
    args = (seed, steps, chosen.batch, words, chosen.most, queue)
    process = mp.Process(target=teach, args=args, daemon=True)
    process.start()
    for _ in steps:
        while True:
            try:
                yield queue.get(timeout=10)
                break
            except Empty:
                if not process.is_alive():
                    raise RuntimeError("the process that draws the lessons has died") from None


def learn(made: Any, steppers: list[torch.optim.Optimizer], batch: Batch, *, bf16: bool) -> float:
    """One step on a batch; its loss."""
    with torch.autocast(made.device.type, torch.bfloat16, enabled=bf16):
        found, targets = logits(made, batch)
    weights = torch.from_numpy(batch.weights[batch.targets != IGNORED]).to(made.device)
    each = torch.nn.functional.cross_entropy(found.float(), targets, reduction="none")
    loss = (each * weights).sum() / weights.sum()
    for stepper in steppers:
        stepper.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
    for stepper in steppers:
        stepper.step()
    return loss.item()


def keep(made: Any, steppers: list[torch.optim.Optimizer], step: int, file: Path) -> None:
    """Write all that the next step needs, whole or not at all."""
    state = {
        "model": made.state_dict(),
        "optimizers": [stepper.state_dict() for stepper in steppers],
        "step": step,
    }
    torch.save(state, file.with_suffix(".part"))
    file.with_suffix(".part").replace(file)


def take_up(made: Any, steppers: list[torch.optim.Optimizer], file: Path) -> int:
    """Go on where `keep` was called last, if it was; the first step that is left."""
    if not file.exists():
        return 0
    state = torch.load(file, map_location=made.device)
    made.load_state_dict(state["model"])
    for stepper, saved in zip(steppers, state["optimizers"], strict=True):
        stepper.load_state_dict(saved)
    step: int = state["step"]
    return step


def options() -> argparse.Namespace:
    """What may be said on the command line; the defaults are those of the model that is shipped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=4500)
    parser.add_argument("--stop", type=int, help="stop after this step of them (default: the last)")
    parser.add_argument("--batch", type=int, default=36, help="images a step")
    parser.add_argument("--most", type=int, default=272, help="tokens of a row")
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
    made = model(len(words)).to(torch.device(chosen.device))  # type: ignore[arg-type]
    made.train()
    steppers = optimizers(made, chosen.rate)
    chosen.out.mkdir(parents=True, exist_ok=True)
    first = take_up(made, steppers, chosen.out / "state.pt")
    steps = range(first, chosen.stop or chosen.steps)
    random = Random("mini exam")
    exam = [pack([lesson(random, exam=True) for _ in range(100)], words, 600) for _ in range(5)]
    began, losses = time.monotonic(), list[float]()
    for step, batch in zip(steps, taught(chosen.seed, steps, chosen, words), strict=True):
        for stepper, share in zip(steppers, (1.0, ADAM), strict=True):
            for group in stepper.param_groups:
                group["lr"] = chosen.rate * share * rate_at(step, chosen.steps)
        losses.append(learn(made, steppers, batch, bf16=chosen.bf16))
        done = step + 1
        if done % 50 == 0 or done == steps.stop:
            pace = (time.monotonic() - began) / (done - first)
            print(done, f"loss {np.mean(losses[-50:]):.4f}", f"{pace:.2f} s a step", flush=True)
        if done % chosen.every == 0 or done == steps.stop:
            print(json.dumps(examine(made, exam)), flush=True)
            keep(made, steppers, done, chosen.out / "state.pt")
    save(made.cpu(), words, chosen.out / "model")
    print(f"{sum(path.stat().st_size for path in (chosen.out / 'model').iterdir()):,} bytes")


if __name__ == "__main__":
    main()
