"""How servers are started: what is refused before anything is, and whose answers come of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sightline.errors import UserError
from sightline.models.registry import ModelOptions, resolve


def _identity(spec: str = "vllm/org/llava", flags: str = "") -> str:
    (model,) = resolve(spec, ModelOptions(args={"executable": sys.executable, "flags": flags}))
    return model.identity


def test_a_missing_install_is_told_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.models.served.shutil.which", lambda *_, **__: None)
    with pytest.raises(UserError, match=r"vLLM is not installed here; expected pip install vllm, or .*exec"):
        resolve("vllm/org/llava", ModelOptions())
    monkeypatch.setattr("sightline.models.served.find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"SGLang is not installed here; expected pip install sglang, or "):
        resolve("sglang/org/llava", ModelOptions())
    # Where nothing will be asked, nothing need be installed.
    assert resolve("vllm/org/llava", ModelOptions(keyless=True))[0].identity == "vllm org/llava"


def test_the_sizes_of_the_processor_are_those_of_the_folder_and_of_the_flags(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "preprocessor_config.json").write_text('{"min_pixels": 3136, "max_pixels": 12845056}')

    def sizes(spec: str, flags: str) -> Any:
        (model,) = resolve(spec, ModelOptions(args={"executable": sys.executable, "flags": flags}))
        return model.capabilities.image_processor

    flags = """--mm-processor-kwargs '{"max_pixels": 50176, "num_crops": 4}'"""
    assert sizes(f"vllm/{tmp_path}", "") == {"min_pixels": 3136, "max_pixels": 12845056}
    assert sizes(f"vllm/{tmp_path}", flags) == {"min_pixels": 3136, "max_pixels": 50176}
    assert sizes("vllm/org/llava", flags.replace(" ", "=", 1)) == {"max_pixels": 50176}
    assert sizes("vllm/org/llava", "--mm-processor-kwargs none") == {}


@pytest.mark.parametrize(
    ("spec", "args", "message"),
    [
        ("vllm/", {}, "no model after 'vllm/'"),
        ("vllm/m", {"flags": "--port 8000"}, "--port is chosen by Sightline.*http://HOST:PORT/v1#MODEL"),
        ("sglang/m", {"flags": "--model_path=other"}, "--model-path is chosen by Sightline"),
        ("vllm/m", {"flags": "--api-key sk-1"}, "--api-key would be written to the results"),
        ("vllm/m", {"flags": "--hf-token=hf-1"}, "--hf-token would be written to the results.*HF_TOKEN"),
        (
            "vllm/m",
            {"flags": "--api-ke sk-1"},
            "--api-ke, short for --api-key, would be written to the results",
        ),
        ("vllm/m", {"flags": "--served_model_nam=x"}, "--served-model-name, is chosen by Sightline"),
        ("vllm/m", {"flags": "--ssl-keyfile k.pem"}, "--ssl-keyfile is chosen by Sightline"),
        ("vllm/m", {"flags": "--config srv.yaml"}, "--config names a file of flags.*the flags themselves"),
        ("vllm/m", {"flags": "--dtype half --conf=srv.yaml"}, "--conf, short for --config, names a file"),
        ("vllm/m", {"flags": "8192"}, "does not begin with a flag"),
        ("vllm/m", {"flags": "--x 'y"}, "--model-arg flags: No closing quotation"),
        ("vllm/m", {"executable": "/no/such/vllm"}, "there is no program /no/such/vllm"),
        ("vllm/./nothere", {}, r"there is no folder '\./nothere'"),
        ("vllm/../nothere", {}, r"there is no folder '\.\./nothere'"),
        ("sglang//no/such/folder", {}, "there is no folder '/no/such/folder'"),
        ("sglang/~/no/such/folder", {}, "there is no folder '~/no/such/folder'"),
        ("vllm/m", {"flag": "--x"}, "'flag'.*did you mean 'flags'"),
        ("vllm/m", {"startup": 0}, "startup"),
        ("vlm/m", {}, "did you mean 'vllm/"),
    ],
)
def test_arguments_that_cannot_be_are_refused_at_once(spec: str, args: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        resolve(spec, ModelOptions(args={"executable": sys.executable, **args}))
    assert "sk-1" not in str(error.value)
    assert "hf-1" not in str(error.value)


def test_the_identity_is_the_model_and_the_flags_that_change_answers() -> None:
    assert _identity() == "vllm org/llava"
    assert _identity("sglang/org/llava") == "sglang org/llava"
    one = _identity(
        flags="--max-model-len 8192 --limit-mm-per-prompt '{\"image\": 2}' --tensor-parallel-size 2"
    )
    other = _identity(
        flags="--limit_mm_per_prompt='{\"image\": 2}' --gpu-memory-utilization 0.8 --max-model-len=8192"
    )
    assert one == other
    assert one == "vllm org/llava --limit-mm-per-prompt '{\"image\": 2}' --max-model-len 8192"
    assert _identity(flags="--max-model-len 4096") != _identity(flags="--max-model-len 8192")


def test_of_flags_that_are_repeated_the_order_tells() -> None:
    # Both servers take the last, by Python's argparse.
    assert _identity(flags="--dtype float16 --dtype bfloat16") != _identity(
        flags="--dtype bfloat16 --dtype float16"
    )
    assert _identity(flags="--enable-x --no-enable-x") != _identity(flags="--no-enable-x --enable-x")
    assert _identity(flags="--seed 1 --dtype float16 --dtype half") == _identity(
        flags="--dtype float16 --seed 1 --dtype half"
    )


@pytest.mark.parametrize(
    "flags",
    ["--config-format hf", "--model-impl auto", "--ssl-ca-certs ca.pem", "--hf-overrides '{}'", "-q awq"],
)
def test_flags_that_only_begin_like_refused_ones_are_taken(flags: str) -> None:
    assert _identity(flags=flags) == f"vllm org/llava {flags}"


def test_a_model_id_replaces_it() -> None:
    (model,) = resolve("vllm/m", ModelOptions(args={"executable": sys.executable}, model_id="llava-1.5"))
    assert model.identity == "llava-1.5"
