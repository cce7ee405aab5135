"""Local models against the plain loop of processor and `generate`, one probe at a time.

    python perf/local.py [--model FOLDER]    1,000 probes with one image each, then 250 images with 4 probes
                                             each, then answers of a sentence instead of a phrase
    python perf/local.py --short             a tenth of them, as in CI
    python perf/local.py --gpu               LLaVA-1.5-7B's shape in bfloat16, on a CUDA device

Without a folder the model is a LLaVA of random weights, of the embedded model's size. Sightline runs as
`sightline.arun` on an empty store: its seconds include planning, judging by rules and writing results;
importing libraries is excluded on both sides. In float32 both sides must give the same answers.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image

import sightline
from report import Report, new_parser

PHRASE, SENTENCE = 8, 32
"""Tokens of an answer: about the medians of the released answers of CODIS (7 words) and ConTextual (25)."""

ROUNDING = 1e-4
"""Logits that are closer count as equal: in float32, another order of summation changes them by 1e-5."""

ASKS = ("What is", "Which colour is", "How large is", "Where is", "Is there anything beside")
COLUMNS = ("case", "wall", "probes a second", "processor", "ratio of times", "ratio of processor times")
THINGS = ("the circle", "the red square", "the smallest thing", "the triangle on the left", "it", "the star")


class Case(NamedTuple):
    """The probes of one measurement.

    Attributes:
        name: Its name in the table.
        probes: How many probes.
        a_image: How many of them share an image.
        tokens: Largest number of tokens of an answer.
    """

    name: str
    probes: int
    a_image: int
    tokens: int = PHRASE


def question(random: Random) -> str:
    """Generate a short question about an image.

    Args:
        random: Source of randomness.

    Returns:
        The question.
    """
    return f"{random.choice(ASKS)} {random.choice(THINGS)}, number {random.randint(1, 999)}?"


def write(case: Case, folder: Path, side: int) -> Path:
    """Write a groups file and its images.

    Args:
        case: The probes.
        folder: Where to write.
        side: Side of an image in pixels.

    Returns:
        The groups file.
    """
    random, pixels = Random(case.name), np.random.default_rng(case.probes)
    lines = []
    for number in range(case.probes):
        image = f"{number // case.a_image}.png"
        if number % case.a_image == 0:
            blocks = Image.fromarray(pixels.integers(0, 256, (8, 8, 3), dtype=np.uint8))
            blocks.resize((side, side), Image.Resampling.NEAREST).save(folder / image)
        group, variant = f"g{number // case.a_image}", f"v{number % case.a_image}"
        prompt = question(random)
        lines.append(
            {"group": group, "variant": variant, "images": [image], "prompt": prompt, "references": ["a"]}
        )
    file = folder / "probes.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def tokenizer(size: int = 400) -> Any:
    """Train a byte tokenizer that has tokens for the words of the questions.

    Args:
        size: Number of tokens.

    Returns:
        The tokenizer.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    library: Any = import_module("transformers")
    random, made = Random(0), Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<pad>", "<s>", "</s>", "<image>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator((f"USER: \n{question(random)} ASSISTANT:" for _ in range(1000)), trainer)
    return library.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        extra_special_tokens={"image_token": "<image>"},
    )


def make(folder: Path, *, large: bool) -> None:
    """Write a LLaVA of random weights.

    Args:
        folder: Where to write.
        large: LLaVA-1.5-7B's shape; otherwise the embedded model's.
    """
    t: Any = import_module("transformers")
    pil: Any = import_module("transformers.models.clip.image_processing_pil_clip")
    words = tokenizer()
    side, patch_size = (336, 14) if large else (64, 8)
    vision = {"image_size": side, "patch_size": patch_size}
    text = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    if large:
        vision |= {
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
        }
        text |= {"vocab_size": 32064, "max_position_embeddings": 4096}
    else:
        vision |= {
            "hidden_size": 96,
            "intermediate_size": 384,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
        }
        text |= {
            "vocab_size": len(words),
            "hidden_size": 128,
            "intermediate_size": 512,
            "num_hidden_layers": 4,
        }
        text |= {"num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 1024}
    config = t.LlavaConfig(
        vision_config=t.CLIPVisionConfig(**vision),
        text_config=t.LlamaConfig(**text),
        image_token_index=3,
        vision_feature_layer=-2 if large else -1,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16 if large else torch.float32)
    with torch.device("cuda" if large else "cpu"):
        model = t.LlavaForConditionalGeneration(config)
    torch.set_default_dtype(torch.float32)
    if not large:
        # Weights as models begin with them make all tokens equally likely, and rounding would choose.
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.normal_(std=1.5 * parameter[0].numel() ** -0.5)
    model.save_pretrained(folder)
    images = pil.CLIPImageProcessorPil(
        size={"shortest_edge": side}, crop_size={"height": side, "width": side}
    )
    t.LlavaProcessor(
        images,
        words,
        patch_size=patch_size,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    ).save_pretrained(folder)


class Took(NamedTuple):
    """Seconds of wall time and of processor time; other work on the machine affects the latter less."""

    wall: float
    processor: float

    @classmethod
    def since(cls, began: Took) -> Took:
        """Compute the time since an earlier reading.

        Args:
            began: The earlier reading.

        Returns:
            The difference.
        """
        return cls(time.perf_counter() - began.wall, time.process_time() - began.processor)


def now() -> Took:
    """Read the clocks.

    Returns:
        The clocks.
    """
    return Took(time.perf_counter(), time.process_time())


def loop(plain: Plain, file: Path, most: int) -> tuple[Took, list[str]]:
    """Run the plain loop.

    Args:
        plain: The model.
        file: The groups file.
        most: Largest number of tokens of an answer.

    Returns:
        The time and the answers.
    """
    probes = read_probes(file)
    began = now()
    responses = []
    for prompt, image in probes:
        inputs = plain.inputs(prompt, image)
        tokens = plain.model.generate(**inputs, max_new_tokens=most, do_sample=False)
        answer = tokens[0, inputs["input_ids"].shape[1] :]
        responses.append(plain.processor.decode(answer, skip_special_tokens=True).strip())
    return Took.since(began), responses


def smallest_lead(plain: Plain, probe: tuple[str, Path], most: int) -> float:
    """By how much the chosen token of an answer leads the second one, at the token where it leads least.

    Args:
        plain: The model.
        probe: Prompt and image.
        most: Largest number of tokens of the answer.

    Returns:
        The difference of the two logits.
    """
    found = plain.model.generate(
        **plain.inputs(*probe),
        max_new_tokens=most,
        do_sample=False,
        output_scores=True,
        return_dict_in_generate=True,
    )
    best = [scores[0].topk(2).values.tolist() for scores in found.scores]
    return float(min(first - second for first, second in best))


class Plain:
    """Processor and model, as transformers load them."""

    def __init__(self, model_folder: Path, device: str) -> None:
        t: Any = import_module("transformers")
        self.processor = t.AutoProcessor.from_pretrained(model_folder)
        model = t.AutoModelForImageTextToText.from_pretrained(model_folder, dtype="auto")
        self.model = model.to(device).eval()

    def inputs(self, prompt: str, image: Path) -> Any:
        """Prepare one probe.

        Args:
            prompt: The prompt.
            image: The image.

        Returns:
            The inputs of the model.
        """
        if self.processor.chat_template is not None:
            content = [{"type": "image"}, {"type": "text", "text": prompt}]
            turn = [{"role": "user", "content": content}]
            text = self.processor.apply_chat_template(turn, add_generation_prompt=True)
        else:
            text = f"USER: <image>\n{prompt} ASSISTANT:"
        shown = Image.open(image).convert("RGB")
        prepared = self.processor(text=text, images=shown, return_tensors="pt")
        return prepared.to(self.model.device, self.model.dtype)


def read_probes(file: Path) -> list[tuple[str, Path]]:
    """Read prompts and images.

    Args:
        file: The groups file.

    Returns:
        The probes in the order of the file.
    """
    lines = map(json.loads, file.read_bytes().splitlines())
    return [(line["prompt"], file.parent / line["images"][0]) for line in lines]


def ours(model_folder: Path, file: Path, folder: Path, most: int) -> tuple[Took, list[str]]:
    """Run an evaluation on an empty store; loading the model is in its time.

    Args:
        model_folder: The model.
        file: The groups file.
        folder: Where store and results are written.
        most: Largest number of tokens of an answer.

    Returns:
        The time and the answers.
    """
    out = Path(tempfile.mkdtemp(dir=folder))
    began = now()
    evaluation = asyncio.run(
        sightline.arun(
            f"groups:{file}",
            model=f"hf/{model_folder}",
            set={"embedder": "none"},
            gen={"max_tokens": most},
            store=str(out / "s.db"),
            out=str(out / "results"),
        )
    )
    took = Took.since(began)
    assert evaluation.exit_status == 0, evaluation.unanswered
    answers = (out / "results" / "answers.jsonl").read_bytes().splitlines()
    return took, [json.loads(answer)["response"] for answer in answers]


@contextmanager
def unshared() -> Iterator[None]:
    """Encode the image of every request separately inside the block, even if requests share it.

    Yields:
        Nothing.
    """

    from sightline.models.local.encode import collate, to_device

    def alone(loaded: Any, batch: Any) -> dict[str, Any]:
        return to_device(collate(batch, loaded.pad), loaded)

    with patch("sightline.models.local.generate.batch_inputs", alone):
        yield


def bound(model_folder: Path, batch: int, most: int) -> float:
    """Compute the speed if only reading all weights once for each token of a batch took time.

    Args:
        model_folder: The model.
        batch: Requests in a batch.
        most: Tokens of an answer.

    Returns:
        Probes per second.
    """
    size = sum(file.stat().st_size for file in model_folder.glob("*.safetensors"))
    return batch * bandwidth() / (size * most)


def bandwidth() -> float:
    """Measure the memory bandwidth of the CUDA device by copying 2 GiB within it.

    Returns:
        Bytes read and written per second, the median of ten copies.
    """
    source = torch.empty(2**31, dtype=torch.uint8, device="cuda")
    target, times = torch.empty_like(source), []
    for _ in range(12):
        torch.cuda.synchronize()
        began = time.perf_counter()
        target.copy_(source)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 2 * len(source) / sorted(times[2:])[5]


def measure(case: Case, plain: Plain, model_folder: Path, folder: Path, side: int, report: Report) -> None:
    """Measure one case with both sides, and without sharing if images are shared.

    Args:
        case: The probes.
        plain: The model, loaded for the plain loop.
        model_folder: The folder of the same model.
        folder: Where files are written.
        side: Side of an image in pixels.
        report: Gets the rows.

    Raises:
        AssertionError: The answers differ.
    """
    place = folder / case.name.replace(" ", "-")
    place.mkdir()
    file = write(case, place, side)
    alone, expected = loop(plain, file, case.tokens)
    add_row(report, case, "plain loop", alone)
    ways = [("sightline", False)] if case.a_image == 1 else [("without sharing", True), ("sightline", False)]
    for name, apart in ways:
        with unshared() if apart else nullcontext():
            took, responses = ours(model_folder, file, folder, case.tokens)
        check_answers(responses, expected, plain, file, case.tokens)
        add_row(report, case, name, took, alone)


def check_answers(responses: list[str], expected: list[str], plain: Plain, file: Path, most: int) -> None:
    """Check that the answers are those of the plain loop, but for rounding.

    In batches the sums have another order, so that rounding decides between tokens of equal logits. On a GPU,
    with half the precision, it decides more often, and nothing is checked.

    Args:
        responses: The answers of Sightline.
        expected: Those of the plain loop.
        plain: The model of the plain loop.
        file: The groups file.
        most: Largest number of tokens of an answer.

    Raises:
        AssertionError: An answer differs at which no token had a rival.
    """
    if plain.model.device.type != "cpu":
        return
    for probe, one, other in zip(read_probes(file), responses, expected, strict=True):
        if one != other:
            lead = smallest_lead(plain, probe, most)
            assert lead < ROUNDING, f"{one!r} instead of {other!r}, whose tokens lead by {lead:g} or more"


def add_row(report: Report, case: Case, name: str, took: Took, alone: Took | None = None) -> None:
    """Add one row to the table.

    Args:
        report: The report.
        case: The probes.
        name: The side that was measured.
        took: Its time.
        alone: The time of the plain loop.
    """
    ratios = ("", "")
    if alone is not None:
        ratios = (f"{alone.wall / took.wall:.1f}", f"{alone.processor / took.processor:.1f}")
    speed = f"{case.probes / took.wall:.0f}"
    report.row(f"{case.name}: {name}", f"{took.wall:.1f} s", speed, f"{took.processor:.1f} s", *ratios)


def prepare_libraries(*, gpu: bool) -> None:
    """Silence transformers.

    Args:
        gpu: Whether a CUDA device is needed.

    Raises:
        SystemExit: There is none.
    """
    if gpu and not torch.cuda.is_available():
        raise SystemExit("--gpu: torch finds no CUDA device on this machine; nothing was measured")
    logging = import_module("transformers").logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def main() -> int:
    """Measure and print.

    Returns:
        The exit status.
    """
    parser = new_parser(__doc__)
    parser.add_argument("--model", type=Path, help="the folder of a model")
    parser.add_argument("--short", action="store_true", help="a tenth of the probes")
    parser.add_argument("--gpu", action="store_true", help="LLaVA-1.5-7B's shape, on a CUDA device")
    options = parser.parse_args()
    prepare_libraries(gpu=options.gpu)
    device, probes = "cuda" if options.gpu else "cpu", 100 if options.short else 1000
    if not options.gpu:
        torch.set_num_threads(2)
    cases = [
        Case("an image a probe", probes, 1),
        Case("4 probes an image", probes, 4),
        Case("a sentence a probe", probes, 1, SENTENCE),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = options.model
        if model is None:
            model = folder / "model"
            make(model, large=options.gpu)
        # Libraries are imported as they are first used, on both sides.
        warm = folder / "warm"
        warm.mkdir()
        first = write(Case("warm", 8, 1), warm, 96)
        plain = Plain(model, device)
        loop(plain, first, PHRASE)
        ours(model, first, warm, PHRASE)
        report = Report()
        report.table("", *COLUMNS)
        for case in cases:
            measure(case, plain, model, folder, 672 if options.gpu else 96, report)
        if options.gpu:
            from sightline.models.local.load import BATCH

            fastest, device_name = bound(model, BATCH, PHRASE), torch.cuda.get_device_name()
            report.note(
                f"{device_name}: the bandwidth of the memory allows {fastest:.0f} probes/s with answers of"
                f" {PHRASE} tokens in batches of {BATCH}, if reading the weights were all that takes time."
            )
        report.save(options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
