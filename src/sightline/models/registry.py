"""Model names: from a name such as `openai/gpt-4o` to the models that answer for it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.config import Config, api_key
from sightline.errors import UserError, holds_secret, unknown_name
from sightline.formats.prediction import AnswerFiles
from sightline.models.base import Model, read_values, refuse_adapter
from sightline.models.chat import COMPLETIONS, RESPONSES, Form
from sightline.models.openai import Endpoint, EndpointArgs, OpenAICompatible
from sightline.plugins import find_entry, plugged_in, registered_names, wrong_return

if TYPE_CHECKING:
    from sightline.models.local.load import LocalArgs
    from sightline.models.local.model import Attachment
    from sightline.models.served import Served, ServerKind


OPENAI = "https://api.openai.com/v1"
MINI = Path(__file__).parent / "mini"
"""The folder of the embedded model."""
_ADDRESS = "http://HOST:PORT/v1#MODEL"
_AFTER_ROOT = re.compile(rf"({COMPLETIONS})?/*(?=\?|$)")
"""What a URL may have after the root of the API, as Azure's portal shows it, before the query."""
_QUERY = re.compile(r"api-version=[\w.-]+")
"""The only query that a URL may have: that of Azure."""


class ModelOptions(Struct, frozen=True):
    """What the user specifies about a model besides its name."""

    config: Config = field(default_factory=Config)
    args: Mapping[str, Any] = field(default_factory=dict)
    model_id: str | None = None
    seed: int = 0
    keyless: bool = False
    elsewhere: bool = False
    batch: bool = False
    answer_files: AnswerFiles = AnswerFiles()


def resolve(spec: str, options: ModelOptions) -> list[Model]:
    """Create the models for a name. Nothing is sent or loaded yet."""
    spec, options = resolve_name(spec, options)
    for name, value in options.args.items():
        if holds_secret({name: value}):
            raise UserError(
                f"--model-arg {name} contains a secret, which would be written to the results",
                expected="the environment variable that the model reads, or that sightline.toml names",
            )
    prefix, make = model_factory(spec)
    models: list[Model] = make(spec.removeprefix(prefix), spec, options)
    if not isinstance(models, list | tuple):
        raise wrong_return(make, models, list)
    for model in models:
        if not all(hasattr(model, name) for name in ("name", "identity", "host", "capabilities", "answer")):
            raise wrong_return(make, model, Model)
    if options.model_id is not None:
        for model in models:
            model.identity = options.model_id
    return models


def resolve_name(spec: str, options: ModelOptions) -> tuple[str, ModelOptions]:
    """Replace a name of sightline.toml by what it stands for."""
    named = options.config.models.get(spec)
    if named is None:
        return spec, options
    args, model_id = {**named.args, **options.args}, options.model_id or named.model_id
    return named.spec, replace(options, args=args, model_id=model_id)


def openai(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """Create `openai/MODEL`: OpenAI's own API, with the key in OPENAI_API_KEY."""
    if not rest:
        raise UserError("no model after 'openai/'", expected="openai/MODEL, such as openai/gpt-4o")
    return [_at_address(OPENAI, rest, spec, options, default_variable="OPENAI_API_KEY")]


def endpoint(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """Create `http://HOST/v1#MODEL`: one model at one address, or at several separated by commas."""
    addresses, _, model = spec.partition("#")
    if not model:
        raise UserError(
            f"the URL {spec} does not say which model", expected=f"{spec}#MODEL, as the server names it"
        )
    parts = [_AFTER_ROOT.sub("", address.strip(), count=1) for address in addresses.split(",")]
    if options.batch and len(parts) > 1:
        raise UserError(
            f"--batch needs one server, and {spec} names {len(parts)}", expected=f"{parts[0]}#{model}"
        )
    return [_at_address(address, model, f"{','.join(parts)}#{model}", options) for address in parts]


def vllm(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """Create `vllm/ORG/NAME` or `vllm/FOLDER`: a vLLM server that Sightline starts and stops."""
    from sightline.models.served import VLLM

    return [_served(VLLM, rest, spec, options)]


def sglang(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """Create `sglang/ORG/NAME` or `sglang/FOLDER`: an SGLang server that Sightline starts and stops."""
    from sightline.models.served import SGLANG

    return [_served(SGLANG, rest, spec, options)]


def hf(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """Create `hf/ORG/NAME` (Hugging Face Hub) or `hf/FOLDER`: a model that runs in this process."""
    from sightline.models.local.load import LocalArgs, find_folder
    from sightline.models.local.model import LocalModel

    if not rest:
        raise UserError("no model after 'hf/'", expected="hf/ORG/NAME, or hf/FOLDER")
    args: LocalArgs = _arguments(options.args, LocalArgs, spec)
    folder = find_folder(rest, args, fetch=not options.keyless)
    return [LocalModel(folder, name=spec, args=args, attachment=_attachment(args))]


def mini(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """Create `mini`: the embedded model, in float32 by default."""
    from sightline.models.local.load import LocalArgs
    from sightline.models.local.model import LocalModel

    args: LocalArgs = _arguments({"dtype": "float32", **options.args}, LocalArgs, spec)
    return [LocalModel(MINI, name=spec, args=args, version=spec, attachment=_attachment(args))]


def model_folder(spec: str) -> Path:
    """Find the folder with the config.json of a local model; its weights are not downloaded."""
    from sightline.models.local.load import find_config

    if spec == "mini":
        return MINI
    refuse_remote(spec)
    return find_config(spec.removeprefix("hf/"))


def refuse_remote(spec: str) -> None:
    """Refuse a model that does not run in this process, before a key is needed."""
    if spec != "mini" and not spec.startswith("hf/"):
        raise UserError(f"{spec} is not a local model", expected="hf/ORG/NAME, hf/FOLDER or mini")


def replay(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """Create `replay/FILE`: answers from a file of predictions."""
    from sightline.models.offline import Replay

    _arguments(options.args, Struct, spec)
    return [Replay(rest, options.answer_files)]


def baseline(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """Create `baseline/chance`: random guesses."""
    from sightline.models.offline import ChanceBaseline

    _arguments(options.args, Struct, spec)
    if rest != "chance":
        raise unknown_name("model", spec, ["baseline/chance"])
    return [ChanceBaseline(options.seed)]


def _attachment(args: LocalArgs) -> Attachment | None:
    if args.adapter is None:
        return None
    adapter: Attachment = load_adapter(args.adapter)
    return adapter


def _at_address(
    address: str, model: str, spec: str, options: ModelOptions, default_variable: str | None = None
) -> Model:
    hostname, port = _host_and_port(address)
    host = options.config.host(hostname, port)
    root, _, query = address.partition("?")
    form = Form(responses=root.endswith(RESPONSES))
    if options.batch and (query or form.responses):
        raise UserError(
            f"--batch sends chat completions, and not to a URL with {'a query' if query else RESPONSES}",
            found=address,
            expected="the root of the API; at Azure https://RESOURCE.openai.azure.com/openai/v1#DEPLOYMENT",
        )
    target = Endpoint(
        address=root.removesuffix(RESPONSES),
        model=model,
        name=spec,
        identity=f"{spec.partition('#')[0] if '#' in spec else address} {model}",
        key=None if options.keyless else api_key(host, hostname, default_variable),
        proxy=host.proxy,
        query=f"?{query}" if query else "",
        form=form,
    )
    live = OpenAICompatible(target, _arguments(options.args, EndpointArgs, spec))
    if not options.batch:
        return live
    from sightline.models.batches import BatchEndpoint

    live.identity = options.model_id or live.identity
    return BatchEndpoint(live, host.batch)


def _served(kind: ServerKind, model: str, spec: str, options: ModelOptions) -> Served:
    from sightline.models.served import Served, ServedArgs, server_command

    if not model:
        raise UserError(f"no model after '{spec}'", expected=f"{spec}ORG/NAME, or {spec}FOLDER")
    args: ServedArgs = _arguments(options.args, ServedArgs, spec)
    command = server_command(
        kind,
        model,
        flags=args.flags,
        program=args.executable,
        starts=not (options.keyless or options.elsewhere),
    )

    def connect(address: str, key: str | None) -> OpenAICompatible:
        target = Endpoint(
            address=address,
            model=command.served_name,
            name=spec,
            identity=command.identity,
            key=key,
            is_direct=True,
        )
        return OpenAICompatible(target, args)

    return Served(command, connect, startup=args.startup)


def _host_and_port(address: str) -> tuple[str, int]:
    """Split an address. Raises UserError where it is invalid, or may hold a secret."""
    query = address.partition("?")[2]
    if "@" in address or (query and not _QUERY.fullmatch(query)):
        raise UserError(
            "the model's URL contains a password or a query, which would be written to the results",
            expected="a key variable for this host in sightline.toml, and no query but ?api-version=VERSION",
        )
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise UserError(f"'{address}' is not a valid URL ({error})", expected=_ADDRESS) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"'{address}' is not a valid URL", expected=_ADDRESS)
    return parts.hostname, port


def _arguments(args: Mapping[str, Any], kind: type[Any], spec: str) -> Any:
    fields = getattr(kind, "__struct_fields__", ())
    if "adapter" not in fields:
        refuse_adapter(args, spec)
    for name in args:
        if name not in fields:
            if not fields:
                raise UserError(f"this model has no --model-arg, found '{name}'")
            raise unknown_name("--model-arg", name, fields)
    return read_values("--model-arg", args, kind) if fields else None


# -- The names of models: which factory makes which model

# A prefix of model names that ends in "/" or an address scheme, or a whole name
# -> a function of (rest of the name, whole name, ModelOptions) that returns models.
MODELS = {
    "openai/": "sightline.models.registry:openai",
    "http://": "sightline.models.registry:endpoint",
    "https://": "sightline.models.registry:endpoint",
    "vllm/": "sightline.models.registry:vllm",
    "sglang/": "sightline.models.registry:sglang",
    "hf/": "sightline.models.registry:hf",
    "mini": "sightline.models.registry:mini",
    "replay/": "sightline.models.registry:replay",
    "baseline/": "sightline.models.registry:baseline",
    "inspect/": "sightline.models.inspect:inspect",
}


ADAPTER_LOADER = "sightline.adapter.loading:load_adapter"
"""What loads the adapter of `--model-arg adapter=FOLDER`: a function of the folder's path."""


def model_factory(spec: str) -> tuple[str, Callable[..., Any]]:
    """Find the factory for a model.

    A registered name that does not end in "/" is not a prefix: the whole name of the model must equal it.
    For an address, what other packages register is not searched, because that takes longer than the rest.
    """
    is_address = spec.startswith(("http://", "https://"))
    names = [*MODELS, *plugged_in["models"]] if is_address else registered_names("models", MODELS)
    fitting = [name for name in names if spec == name or (name.endswith("/") and spec.startswith(name))]
    if fitting:
        longest = max(fitting, key=len)
        return longest, find_entry("models", longest, MODELS)
    listed = [f"{name}..." if name.endswith("/") else name for name in names]
    raise unknown_name("model", spec, [*listed, "baseline/chance"])


def load_adapter(folder: str) -> Any:
    module, _, function = ADAPTER_LOADER.partition(":")
    return getattr(importlib.import_module(module), function)(folder)
