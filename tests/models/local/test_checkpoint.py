"""A model's folder: what is wrong with it is one message, found before anything is asked."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

from sightline.errors import UserError
from sightline.models.local import load
from sightline.models.local.load import LocalArgs, effective
from sightline.models.local.model import LocalModel
from sightline.models.registry import ModelOptions, resolve

pytestmark = pytest.mark.skipif(
    None in (find_spec("torch"), find_spec("transformers")), reason="needs the extra 'local'"
)

Folder = Callable[[str], Path]


def _hf(folder: object, **args: Any) -> Any:
    (model,) = resolve(f"hf/{folder}", ModelOptions(args=args))
    return model


def _enter(model: Any) -> None:
    async def run() -> None:
        async with model:
            pass

    asyncio.run(run())


@pytest.fixture
def copy(folder: Folder, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a tiny model's folder, to be broken."""
    return lambda name: Path(shutil.copytree(folder(name), tmp_path / name))


def _change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


# What a folder lacks


@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ("config.json", "lacks config.json"),
        ("model.safetensors", "lacks its weights.*model.safetensors"),
        ("processor_config.json", "lacks its processor.*processor_config.json"),
    ],
)
def test_a_folder_that_lacks_a_part_is_named_with_that_part(
    copy: Callable[[str], Path], lacking: str, message: str
) -> None:
    folder = copy("llava")
    (folder / lacking).unlink()
    with pytest.raises(UserError, match=message) as error:
        _hf(folder)
    assert str(folder) in str(error.value)


def test_a_config_that_is_none_is_named(copy: Callable[[str], Path]) -> None:
    folder = copy("llava")
    (folder / "config.json").write_text("[1")
    with pytest.raises(UserError, match=r"config\.json.*cannot be read"):
        _hf(folder)
    (folder / "config.json").write_text("{}")
    with pytest.raises(UserError, match="model_type"):
        _hf(folder)


def test_a_lost_part_of_the_weights_is_named(copy: Callable[[str], Path]) -> None:
    folder = copy("llava")
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model-1.safetensors").write_bytes(b"")
    with pytest.raises(UserError, match=r"lacks model-2\.safetensors"):
        _hf(folder)


def test_neither_folder_nor_name_is_one_message() -> None:
    with pytest.raises(UserError, match=r"no folder '\./nowhere'"):
        _hf("./nowhere")
    with pytest.raises(UserError, match="no model after 'hf/'"):
        _hf("")


def test_a_folder_has_no_revisions(folder: Folder) -> None:
    with pytest.raises(UserError, match="revision"):
        _hf(folder("llava"), revision="main")


# What shows when it is loaded


def test_weights_that_do_not_belong_to_the_config_are_refused(copy: Callable[[str], Path]) -> None:
    folder = copy("llava")
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["num_hidden_layers"] = 3
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="weights lack 9 of the model's parameters"):
        _enter(_hf(folder))


def test_weights_of_another_shape_are_named_with_both(copy: Callable[[str], Path]) -> None:
    folder = copy("llava")
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["intermediate_size"] = 48
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"6 of its weights have another shape.*\(32, 64\), not \(32, 48\)"):
        _enter(_hf(folder))


def test_weights_that_end_too_early_are_told_before_anything_is_loaded(copy: Callable[[str], Path]) -> None:
    file = copy("llava") / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(UserError, match=r"model\.safetensors: is truncated, damaged .* fetch it again"):
        _hf(file.parent)


def test_a_pointer_of_git_lfs_is_told(copy: Callable[[str], Path]) -> None:
    folder = copy("llava")
    for name in ("model.safetensors", "pytorch_model.bin"):
        (folder / "model.safetensors").unlink(missing_ok=True)
        (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 99\n")
        with pytest.raises(UserError, match=rf"{name}: is a pointer of Git LFS .*git lfs pull"):
            _hf(folder)


def test_an_unknown_architecture_is_named_with_the_nearest(copy: Callable[[str], Path]) -> None:
    folder = copy("llava")
    _change(folder / "config.json", model_type="lavva")
    with pytest.raises(
        UserError, match=r"does not support the model_type 'lavva', did you mean 'llava.*trust_remote_code"
    ):
        _enter(_hf(folder))


def test_a_broken_chat_template_is_the_folder_s_fault(copy: Callable[[str], Path]) -> None:
    folder = copy("chat")
    (folder / "chat_template.jinja").write_text("{{ bos_token }}\n{% if x %}")
    with pytest.raises(UserError, match=r"its chat template is broken at line 2 .*template=plain"):
        _enter(_hf(folder))
    _enter(_hf(folder, template="plain"))


def test_a_chat_template_may_refuse_what_nobody_asks(copy: Callable[[str], Path]) -> None:
    folder = copy("chat")
    (folder / "chat_template.jinja").write_text("{{ raise_exception('an image is needed') }}")
    _enter(_hf(folder))


def test_damaged_weights_are_one_message(copy: Callable[[str], Path]) -> None:
    folder = copy("llava")
    (folder / "model.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00nonsense")
    with pytest.raises(UserError, match=r"model\.safetensors: is truncated, damaged"):
        _enter(_hf(folder))


def test_a_tokenizer_that_is_gone_is_one_message(copy: Callable[[str], Path]) -> None:
    folder = copy("llava")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UserError, match="processor cannot be loaded"):
        _enter(_hf(folder))


def test_a_processor_that_needs_a_missing_package_names_it(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ImportError("\nXImageProcessor requires the Torchvision library but it was not found.\nAdvice.")

    monkeypatch.setattr(import_module("transformers").AutoProcessor, "from_pretrained", refuse)
    with pytest.raises(UserError, match=r"package.*Torchvision library.*pip install torchvision") as error:
        _enter(_hf(folder("llava")))
    assert "Advice" not in str(error.value)


def test_a_model_of_text_alone_takes_no_images_and_is_refused_when_it_is_loaded(tmp_path: Path) -> None:
    library: Any = import_module("transformers")
    config = library.LlamaConfig(
        hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1
    )
    library.LlamaForCausalLM(config).save_pretrained(tmp_path)
    model = _hf(tmp_path)
    assert not model.capabilities.images
    with pytest.raises(UserError):
        _enter(model)


# The machine


def test_an_attention_that_is_not_installed_is_told_with_what_installs_it(folder: Folder) -> None:
    if find_spec("flash_attn") is not None:
        pytest.skip("flash-attn is installed here")
    with pytest.raises(
        UserError, match=r"attention=flash_attention_2 is not available here .*pip install flash"
    ) as e:
        _enter(_hf(folder("llava"), attention="flash_attention_2"))
    assert "doesn't seem to be installed" in str(e.value)


def test_cuda_without_cuda_is_one_message(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("torch").cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match=r"device=cuda:1: torch finds no CUDA device.*device=cpu"):
        _enter(_hf(folder("llava"), device="cuda:1"))


def test_a_number_type_that_the_device_lacks_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = import_module("torch")

    def refuse(*_: object, **__: object) -> None:
        raise TypeError("Trying to convert BFloat16 to the MPS backend")

    monkeypatch.setattr(torch, "ones", refuse)
    with pytest.raises(UserError, match="cpu does not support bfloat16"):
        load._check_dtype("bfloat16", torch.device("cpu"), torch)


def test_a_device_is_shared_if_more_is_in_use_than_one_process_needs_before_it_loads() -> None:
    gib = 2**30
    assert load.shared_device("cuda:0", 80 * gib, 80 * gib, 0) == ""
    assert load.shared_device("cuda:0", 80 * gib - load.OWN_BYTES, 80 * gib, 0) == ""
    note = load.shared_device("cuda:1", 30 * gib, 80 * gib, 0)
    assert note.startswith("cuda:1 is shared: other processes use 50.0 of 80.0 GiB of its memory")


def test_a_device_is_not_shared_with_an_earlier_model_of_the_same_process() -> None:
    gib = 2**30
    assert load.shared_device("cuda:0", 60 * gib - load.OWN_BYTES, 80 * gib, 20 * gib) == ""
    note = load.shared_device("cuda:0", 30 * gib, 80 * gib, 20 * gib)
    assert note.startswith("cuda:0 is shared: other processes use 30.0 of 80.0 GiB of its memory")


def test_too_little_memory_for_an_adapter_is_one_clear_error(folder: Callable[[str], Path]) -> None:
    class Huge:
        identity = "huge"

        def check_base(self, identity: str) -> None:
            pass

        def attach(self, loaded: Any) -> Any:
            raise torch.OutOfMemoryError("CUDA out of memory")

    torch: Any = import_module("torch")
    model = LocalModel(folder("llava"), name="hf/tiny", attachment=cast(Any, Huge()))

    async def opened() -> None:
        async with model:
            pass

    with pytest.raises(UserError, match="do not fit into memory: cpu has too little memory for its adapter"):
        asyncio.run(opened())


def test_too_little_memory_is_said_before_anything_is_loaded(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "_free_memory", lambda: 1000)
    parameters = sum(p.numel() for p in _plain(folder("llava")).state_dict().values())
    with pytest.raises(
        UserError, match=f"do not fit into memory: {parameters * 2:,} bytes in float16, 1,000"
    ):
        _enter(_hf(folder("llava"), dtype="float16"))


def _plain(folder: Path) -> Any:
    library: Any = import_module("transformers")
    return library.AutoModelForImageTextToText.from_pretrained(folder)


# Arguments


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"dtype": "int8"}, "int8"),
        ({"device": "gpu"}, "device"),
        ({"batch": 0}, "batch"),
        ({"batchsize": 4}, "unknown --model-arg 'batchsize', did you mean 'batch'"),
        ({"attention": "fast"}, "fast"),
    ],
)
def test_arguments_are_checked(folder: Folder, args: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        _hf(folder("llava"), **args)


def test_sampling_that_has_no_part_in_the_answer_is_no_part_of_the_key() -> None:
    greedy = {"temperature": 0, "max_tokens": 8}
    assert effective({**greedy, "top_p": 0.5, "top_k": 3, "seed": 4}) == greedy
    assert effective({"max_tokens": 8}) == greedy
    drawn = {"temperature": 0.5, "max_tokens": 8, "seed": 0}
    assert effective({"temperature": 0.5, "max_tokens": 8, "top_p": 1, "top_k": 0}) == drawn
    assert effective({**drawn, "top_p": 0.9, "repetition_penalty": 1.1})["top_p"] == 0.9
    with pytest.raises(
        UserError, match="unknown sampling option of a local model 'top_n', did you mean 'top_"
    ):
        effective({"top_n": 3})
    with pytest.raises(UserError, match="temperature"):
        effective({"temperature": -1})


# Whose answers


def test_the_identity_is_what_the_files_hold_and_not_where_they_lie(copy: Callable[[str], Path]) -> None:
    folder = copy("llava")
    first = _hf(folder).identity
    assert _hf(folder.rename(folder.with_name("elsewhere"))).identity == first
    folder = folder.with_name("elsewhere")
    (folder / "README.md").write_text("words for people")
    assert _hf(folder).identity == first
    assert _hf(folder, dtype="bfloat16").identity != first
    assert _hf(folder, template="plain").identity != first
    assert _hf(folder, batch=2, attention="eager", device="cpu").identity == first
    _change(folder / "processor_config.json", patch_size=16)
    assert _hf(folder).identity != first


def test_capabilities_are_read_from_the_files(folder: Folder) -> None:
    chat, blip = _hf(folder("chat")).capabilities, _hf(folder("blip2")).capabilities
    assert (chat.images, chat.several_images, chat.likelihood) == (True, True, True)
    assert (blip.images, blip.several_images) == (True, False)
    assert [_hf(folder(name)).capabilities.needs_image for name in ("chat", "blip2", "instructblip")] == [
        False,
        True,
        True,
    ]
    assert "TIFF" in chat.limits.formats


def test_the_number_type_is_the_checkpoint_s_own(copy: Callable[[str], Path]) -> None:
    folder = copy("llava")
    _change(folder / "config.json", dtype="bfloat16")
    assert _hf(folder).identity.endswith("bfloat16")
    assert LocalModel(folder, name="mini", version="mini").name == "mini"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_number_type_is_that_of_most_weights_where_the_config_names_none(
    copy: Callable[[str], Path], dtype: str
) -> None:
    library, torch = import_module("safetensors.torch"), import_module("torch")
    folder = copy("llava")
    config = json.loads((folder / "config.json").read_text())
    for part in (config, config["text_config"], config["vision_config"]):
        part.pop("dtype", None)
    (folder / "config.json").write_text(json.dumps(config))
    weights = library.load_file(folder / "model.safetensors")
    kept = next(iter(weights))
    changed = {
        name: one.to(torch.float32 if name == kept else getattr(torch, dtype))
        for name, one in weights.items()
    }
    library.save_file(changed, folder / "model.safetensors", metadata={"format": "pt"})
    assert _hf(folder).identity.endswith(dtype)


def test_the_library_that_resizes_images_is_part_of_the_identity(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = _hf(folder("llava")).identity
    monkeypatch.setattr(load, "_torchvision", lambda: " torchvision 0.28")
    assert _hf(folder("llava")).identity != without


def test_a_torchvision_that_does_not_fit_torch_is_named_as_the_cause(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("Could not import module 'LlavaProcessor'.")

    (tmp_path / "torchvision").mkdir()
    fault = 'raise RuntimeError("operator torchvision::nms does not exist")'
    (tmp_path / "torchvision" / "__init__.py").write_text(fault)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(import_module("transformers").AutoProcessor, "from_pretrained", refuse)
    with pytest.raises(UserError, match=r"torchvision does not fit torch.*torchvision::nms"):
        _enter(_hf(folder("llava")))


# The hub


def test_a_name_of_the_hub_is_looked_up_here_first_and_else_downloaded(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub: Any = import_module("huggingface_hub")
    missing = import_module("huggingface_hub.errors").LocalEntryNotFoundError
    calls: list[dict[str, Any]] = []

    def snapshot(name: str, **options: Any) -> str:
        calls.append({"name": name, **options})
        if options.get("local_files_only") and not here:
            raise missing("not here")
        return str(folder("llava"))

    monkeypatch.setattr(hub, "snapshot_download", snapshot)
    monkeypatch.setattr(load, "_has_safetensors", lambda *_: True)
    here = True
    assert load.find_folder("org/name", LocalArgs(), fetch=True) == folder("llava")
    assert len(calls) == 1
    looked_up = calls[0]
    here = False
    load.find_folder("org/name", LocalArgs(revision="abc"), fetch=True)
    assert calls[-1]["revision"] == "abc"
    assert "*.bin" in calls[-1]["ignore_patterns"]
    for patterns in ("allow_patterns", "ignore_patterns"):
        assert calls[-1][patterns] == looked_up[patterns]
    with pytest.raises(UserError, match=r"not on this machine yet.*hf download org/name"):
        load.find_folder("org/name", LocalArgs(), fetch=False)


def test_a_snapshot_with_a_config_alone_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llava", "vision_config": {}}')
    monkeypatch.setattr(import_module("huggingface_hub"), "snapshot_download", lambda *_, **__: str(tmp_path))
    with pytest.raises(UserError, match="not on this machine yet"):
        load.find_folder("org/name", LocalArgs(), fetch=False)


def test_a_model_that_cannot_be_downloaded_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise import_module("huggingface_hub.errors").LocalEntryNotFoundError("offline")

    monkeypatch.setattr(import_module("huggingface_hub"), "snapshot_download", refuse)
    monkeypatch.setattr(load, "_has_safetensors", lambda *_: True)
    with pytest.raises(UserError, match=r"'org/name' at v2 cannot be downloaded from the Hugging Face Hub"):
        _hf("org/name", revision="v2")


def test_a_name_that_the_hub_does_not_allow_is_the_same_message() -> None:
    with pytest.raises(
        UserError, match=r"'org/na--me' cannot be downloaded from the Hugging Face Hub .*na--me"
    ):
        _hf("org/na--me")


def test_a_hub_that_cannot_be_reached_is_the_same_message(monkeypatch: pytest.MonkeyPatch) -> None:
    class ConnectError(Exception):
        """As of the library that the hub's client calls with: no OSError, and elsewhere in each version."""

    def unreachable(*_: object) -> bool:
        raise ConnectError("Name or service not known")

    missing = import_module("huggingface_hub.errors").LocalEntryNotFoundError

    def absent(*_: object, **__: object) -> None:
        raise missing("not here")

    monkeypatch.setattr(import_module("huggingface_hub"), "snapshot_download", absent)
    monkeypatch.setattr(load, "_has_safetensors", unreachable)
    with pytest.raises(
        UserError, match=r"cannot be downloaded from the Hugging Face Hub .*Name or service not known"
    ):
        _hf("org/name")
