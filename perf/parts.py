"""The parts of docs/performance.md: what each measures, with which script, and what it needs."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

SHARED = Path(os.environ.get("SIGHTLINE_SHARED") or Path(__file__).resolve().parents[2] / "shared")


class Part(Struct, frozen=True, kw_only=True):
    """One part of the page.

    Attributes:
        name: Its name on the command line.
        title: Its heading.
        about: What is measured, and what it is compared with.
        script: The script in this folder.
        arguments: The arguments of the full measurement.
        short: The arguments of a trial.
        minutes: About how long the full measurement takes on two cores.
        data: Whether it needs the folder SIGHTLINE_SHARED.
        modules: The modules that it needs besides Sightline's own.
        gpu: Whether it needs a CUDA device.
    """

    name: str
    title: str
    about: str
    script: str
    arguments: tuple[str, ...] = ()
    short: tuple[str, ...] = ("--short",)
    minutes: int
    data: bool = False
    modules: tuple[str, ...] = ()
    gpu: bool = False

    def missing(self) -> str | None:
        """Say why the part cannot be measured here.

        Returns:
            The reason; None if it can be measured.
        """
        if self.data and not (SHARED / "tools").is_dir():
            return "it needs the folder with the released data (SIGHTLINE_SHARED)"
        absent = [module for module in self.modules if find_spec(module) is None]
        if absent:
            return f"{', '.join(absent)} is not installed"
        return "it needs a CUDA device" if self.gpu and not _has_gpu() else None


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


PARTS = (
    Part(
        name="engine",
        title="The engine beside a bare client",
        about="Whole processes, from the start to the written metrics, on the 1,399 images of II-Bench, "
        "against a server on the same machine. The bare client (perf/floor.py) reads the same files, "
        "sends the same prompts, retries, and writes one line for each answer. The server derives "
        "latency and failures from each request, so that they are the same for both. All columns are "
        "medians of several rounds; the ratio is that of the rounds' ratios.",
        script="engine.py",
        minutes=6,
        arguments=("--rounds", "1"),
        data=True,
    ),
    Part(
        name="peers",
        title="The engine beside other tools",
        about="The same 1,399 images, prompts and server that answers at once, 64 parallel calls, whole "
        "processes. lmms-eval decodes each image and encodes it again (as JPEG here; its default is PNG).",
        script="peers.py",
        minutes=4,
        short=("--limit", "40"),
        data=True,
    ),
    Part(
        name="scoring",
        title="Scoring collected answers beside other tools",
        about="Answers to the questions of perf/growth.py, written by a seeded generator; 60 % are right. A "
        "quarter each is `(B)`, `The answer is B.`, `ANSWER: B` and the text of the option. Whole processes, "
        "with imports, that read a log, score and write the results. The accuracy shows what each tool's "
        "reader reads. inspect_ai's choice scorer reads nothing in a log; its reader is called first here. "
        "lmms-eval does not read the log that it writes; it gets the older form here, which it reads. "
        "inspect_ai's writer had not finished a log of 100,000 answers after 13 minutes, so Sightline scores "
        "these alone.",
        script="scoring.py",
        minutes=5,
    ),
    Part(
        name="judges",
        title="A judge that is asked while the model answers",
        about="600 questions of generated ConTextual data, and two servers with the same latencies "
        "(lognormal, median 0.5 s), 16 parallel calls at each. With a limit of requests, which nothing "
        "reaches here, the judge waits for the end. Both write the same answers; otherwise the script fails.",
        script="judges.py",
        minutes=3,
        data=True,
    ),
    Part(
        name="path",
        title="What answered probes cost",
        about="Every command reads answers from the store, judges and counts them; the cached run writes its "
        "results folder, `score` a store of its own. Whole processes, with their start.",
        script="path.py",
        minutes=12,
        data=True,
    ),
    Part(
        name="growth",
        title="Growth with the number of probes",
        about="Groups of four questions in text with six options, written by a seeded generator, and the "
        "model `baseline/chance`, so that the time is Sightline's own. The store's bytes include its "
        "write-ahead log.",
        script="growth.py",
        minutes=25,
        arguments=("--sizes", "1000", "10000", "100000", "1000000"),
    ),
    Part(
        name="local",
        title="Local models beside a plain loop",
        about="A LLaVA of random weights, of the embedded model's size, beside a loop of processor and "
        "`generate`, one probe at a time. Both sides give the same answers in float32, except where "
        "two tokens have equal logits; otherwise the script fails.",
        script="local.py",
        minutes=5,
        modules=("torch", "transformers"),
    ),
    Part(
        name="local-gpu",
        title="A large local model on a GPU, beside a plain loop",
        about="A LLaVA of random weights, of LLaVA-1.5-7B's shape, in bfloat16, beside a loop of processor "
        "and `generate`, one probe at a time. Loading the model is in Sightline's time, and not in that of "
        "the loop. Images have 672 pixels a side. The answers are not compared: with half of the precision, "
        "rounding decides more often between tokens.",
        script="local.py",
        arguments=("--gpu", "--short"),
        short=("--gpu", "--short"),
        minutes=6,
        modules=("torch", "transformers"),
        gpu=True,
    ),
    Part(
        name="training-gpu",
        title="Training adapters on a GPU",
        about="Adapters of each kind on a LLaVA of random weights, of LLaVA-1.5-7B's shape, in bfloat16. The "
        "weights of the adapters are in float32. Random weights show only that the training works.",
        script="adapter_training.py",
        arguments=("--gpu",),
        short=("--gpu", "--short"),
        minutes=3,
        modules=("torch", "transformers", "peft"),
        gpu=True,
    ),
    Part(
        name="replicas",
        title="Two replicas beside one",
        about="Replicas of `mini` as actors of Ray on one machine, each limited to one processor. Two "
        "replicas are as much faster as the processors that they get; the command takes some, too.",
        script="replicas.py",
        arguments=("--requests", "600"),
        minutes=3,
        modules=("torch", "transformers", "ray"),
    ),
    Part(
        name="consistency",
        title="Consistency of responses beside a plain loop",
        about="As many responses as the paper's test set has, written by a seeded generator, beside a loop "
        "that encodes both sides of every pair with the same model, with its imports. Both give "
        "the same numbers to 1e-5; otherwise the script fails.",
        script="consistency.py",
        minutes=16,
        modules=("sentence_transformers",),
    ),
    Part(
        name="restyle",
        title="Restyling beside a plain loop",
        about="Photos of CODIS in the four styles of the paper, beside a loop of the same network.",
        script="restyle.py",
        arguments=("--limit", "4"),
        short=("--limit", "2"),
        minutes=1,
        data=True,
        modules=("torch",),
    ),
    Part(
        name="ocr",
        title="OCR beside a plain loop",
        about="Images of II-Bench of at most 512 pixels a side, read with `build read`, and with RapidOCR in "
        "a loop.",
        script="ocr.py",
        arguments=("--limit", "20", "--rounds", "1"),
        minutes=3,
        data=True,
        modules=("rapidocr",),
    ),
    Part(
        name="pages",
        title="The viewer",
        about="The time to the first byte of every page of `sightline serve`, 41 visits with other arguments "
        "each time, and the processor time of the server.",
        script="pages.py",
        arguments=("--sizes", "10000"),
        minutes=2,
    ),
    Part(
        name="annotation",
        title="Annotation pages",
        about="Ten annotators at once, three of them for each item, each with 2 s for an item on average. A "
        "judgement is one form and the page of the next item. The log equals what the pages confirmed; "
        "otherwise the script fails.",
        script="annotation.py",
        arguments=("--items", "100", "--pause", "2"),
        minutes=2,
        modules=("uvicorn",),
    ),
)
