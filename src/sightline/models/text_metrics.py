"""Text metrics: similarity of a response to a reference, by the packages that define each metric.

ROUGE-L (Lin 2004) by rouge-score, BERTScore (Zhang et al. 2019) by bert-score, BLEURT (Sellam et al. 2020)
by any sequence-regression checkpoint that transformers loads. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from sightline.errors import UserError, unknown_name
from sightline.formats.files import read_bytes
from sightline.models.embedder import DEFAULT, packaged_folder
from sightline.models.model_files import answer_files, cached_folder, digest_of_files, folder_of, loading
from sightline.text import decode_json

ResponsePair = tuple[str, str]
"""A response and a reference."""

BATCH = 16
"""Pairs in one forward pass of BLEURT."""

MOST_TOKENS = 512
"""Tokens that an encoder reads if neither tokenizer nor configuration says it."""

_INSTALL = "pip install 'sightline[text]'"
_EXPECTED = "the whole folder of a model that transformers loads"
_LAYERS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer")
_T5 = ("t5", "mt5", "umt5", "longt5", "switch_transformers")


class TextMetric(Protocol):
    """Measures the similarity of responses to references, x 100."""

    name: str
    identity: str

    def score(self, pairs: Sequence[ResponsePair]) -> list[float]: ...


def text_metric(name: str, options: Mapping[str, Any]) -> TextMetric:
    """Create a text metric; torch is not imported yet."""
    if name == "rouge_l":
        _require(name, "rouge_score")
        return RougeL()
    if name == "bertscore":
        _require(name, "bert_score")
        return BertScore(options["bertscore_model"], options["bertscore_layer"])
    if name == "bleurt":
        _require(name, "transformers")
        if options["bleurt_model"] is None:
            raise UserError(
                "the text metric 'bleurt' needs a checkpoint",
                expected="--set bleurt_model=FOLDER, or a name of the Hugging Face cache of this machine",
            )
        return Bleurt(options["bleurt_model"])
    raise unknown_name("text metric", name, ("rouge_l", "bertscore", "bleurt"))


class RougeL:
    """ROUGE-L, F-measure, no stemming: the longest common subsequence of words of [a-z0-9]."""

    name = "rouge_l"

    def __init__(self) -> None:
        self.identity = _version("rouge-score")

    def score(self, pairs: Sequence[ResponsePair]) -> list[float]:
        """F x 100, 0 to 100, for each pair."""
        from rouge_score.rouge_scorer import RougeScorer

        scorer = RougeScorer(["rougeL"], use_stemmer=False)
        return [
            100 * float(scorer.score(reference, responses)["rougeL"].fmeasure)
            for responses, reference in pairs
        ]


class BertScore:
    """BERTScore, F1, without rescaling and rarity weights: tokens matched by their contextual vectors.

    The layer is the given one, otherwise the one that bert-score tuned for the model's name, otherwise the
    last.
    """

    name = "bertscore"

    def __init__(self, model: str, layer: int | None = None) -> None:
        """Find the model and compute the identity. `layer`: number of the layer, None for the default."""
        self._model = model
        self._folder = _folder_of(model, self.name)
        self._config = _config_of(self._folder)
        self._layer = layer or _tuned_layer(model) or self._last_layer()
        weights = f"{_short(model)} sha256:{_digest(self._folder)} layer {self._layer}"
        self.identity = f"{weights} {_version('bert-score')}"
        self._loaded: Any = None

    def score(self, pairs: Sequence[ResponsePair]) -> list[float]:
        values = [0.0] * len(pairs)
        positions = [position for position, pair in enumerate(pairs) if all(text.strip() for text in pair)]
        if positions:
            responses, references = zip(*(pairs[position] for position in positions), strict=True)
            _, _, scores = self._scorer().score(list(responses), list(references))
            for position, value in zip(positions, scores.tolist(), strict=True):
                values[position] = 100 * value
        return values

    def _scorer(self) -> Any:
        if self._loaded is None:
            # bert-score searches the whole path for these letters, and would load any other model as a T5.
            if "t5" in str(self._folder) and self._config.get("model_type") not in _T5:
                raise UserError(
                    "bert-score treats every model as a T5 if its path contains 't5'",
                    file=self._folder,
                    expected="the model under another path",
                )
            with loading(f"'{self._model}'", self._folder, install=_INSTALL, expected=_EXPECTED):
                from bert_score import BERTScorer

                loaded = BERTScorer(model_type=str(self._folder), num_layers=self._layer)
                _bound(loaded._tokenizer, self._config)
            self._loaded = loaded
        return self._loaded

    def _last_layer(self) -> int:
        for key in _LAYERS:
            if isinstance(self._config.get(key), int):
                return int(self._config[key])
        raise UserError(
            f"the configuration of '{self._model}' does not say how many layers it has",
            file=self._folder / "config.json",
            expected="--set bertscore_layer=N",
        )


class Bleurt:
    """BLEURT by a checkpoint with one regression output, which reads the reference, then the response."""

    name = "bleurt"

    def __init__(self, model: str) -> None:
        self._model = model
        self._folder = _folder_of(model, self.name)
        self._config = _config_of(self._folder)
        self.identity = f"{_short(model)} sha256:{_digest(self._folder)}"
        self._loaded: tuple[Any, Any] | None = None

    def score(self, pairs: Sequence[ResponsePair]) -> list[float]:
        import torch

        tokenizer, model = self._parts()
        values = [0.0] * len(pairs)
        by_length = sorted(
            range(len(pairs)), key=lambda position: -len(pairs[position][0]) - len(pairs[position][1])
        )
        for start in range(0, len(pairs), BATCH):
            positions = by_length[start : start + BATCH]
            responses, references = zip(*(pairs[position] for position in positions), strict=True)
            tokens = tokenizer(
                list(references),
                list(responses),
                padding=True,
                truncation="longest_first",
                return_tensors="pt",
            )
            with torch.inference_mode():
                scores = model(**tokens.to(model.device)).logits[:, 0].float().cpu().tolist()
            for position, value in zip(positions, scores, strict=True):
                values[position] = 100 * value
        return values

    def _parts(self) -> tuple[Any, Any]:
        if self._loaded is None:
            with loading(f"'{self._model}'", self._folder, install=_INSTALL, expected=_EXPECTED):
                from transformers import AutoModelForSequenceClassification, AutoTokenizer

                tokenizer = AutoTokenizer.from_pretrained(str(self._folder), local_files_only=True)
                model = AutoModelForSequenceClassification.from_pretrained(
                    str(self._folder), local_files_only=True
                )
            if model.config.num_labels != 1:
                raise UserError(
                    f"'{self._model}' is not a regression checkpoint",
                    file=self._folder / "config.json",
                    found=f"{model.config.num_labels} labels",
                    expected="one output, as BLEURT's",
                )
            _bound(tokenizer, self._config)
            self._loaded = tokenizer, model.float().eval()
        return self._loaded


def _require(name: str, package: str) -> None:
    if find_spec(package) is None:
        raise UserError(f"the text metric '{name}' needs {package}", expected=_INSTALL)


def _version(package: str) -> str:
    from importlib.metadata import version

    return f"{package} {version(package)}"


def _folder_of(model: str, metric: str) -> Path:
    if model == DEFAULT:
        return packaged_folder(f"the text metric '{metric}'", _INSTALL)
    folder = folder_of(model) or cached_folder(model)
    if folder is None:
        raise UserError(
            f"the model '{model}' of '{metric}' is neither a folder nor in this machine's Hugging Face cache",
            expected=f"a folder, or `hf download {model}` first; Sightline does not download it",
        )
    return folder


def _config_of(folder: Path) -> dict[str, Any]:
    file = folder / "config.json"
    if not file.is_file():
        raise UserError("contains no model", file=folder, expected="config.json")
    return decode_json(read_bytes(file), dict[str, Any], file, "the configuration of a model")


def _tuned_layer(model: str) -> int | None:
    """The layer that bert-score tuned for a model of that name; its table has only names of the Hub."""
    if model == DEFAULT or Path(model).is_dir():
        return None
    from bert_score.utils import model2layers

    layer: int | None = model2layers.get(model)
    return layer


def _digest(folder: Path) -> str:
    return digest_of_files(folder, answer_files(folder))


def _short(model: str) -> str:
    return Path(model).name if Path(model).is_dir() else model


def _bound(tokenizer: Any, config: Mapping[str, Any]) -> None:
    """Limit a tokenizer without a maximum length to what the model reads, which longer texts would exceed."""
    if tokenizer.model_max_length > 10**6:
        # Some models number their positions from 2.
        tokenizer.model_max_length = int(config.get("max_position_embeddings") or MOST_TOKENS + 2) - 2
