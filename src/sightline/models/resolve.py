"""From a model's name to the models that answer for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from sightline.config import Config, api_key
from sightline.errors import UserError, unknown_name
from sightline.images import ImageLimits
from sightline.models.argument_checks import read_values
from sightline.models.base import Model
from sightline.models.baseline import Chance
from sightline.models.launch import SGLANG, VLLM, Kind, launch
from sightline.models.openai import OpenAICompatible
from sightline.models.replay import Replay
from sightline.models.served import Served
from sightline.registry import model_factory

if TYPE_CHECKING:
    from sightline.models.local.args import LocalArgs
    from sightline.models.local.attachment import Attachment

OPENAI = "https://api.openai.com/v1"
MINI = Path(__file__).parent / "mini"
"""The folder of the embedded model."""
_ADDRESS = "http://HOST:PORT/v1#MODEL"


class ModelOptions(Struct, frozen=True):
    """What the user said of a model beside its name."""

    config: Config = field(default_factory=Config)
    args: Mapping[str, Any] = field(default_factory=dict)
    model_id: str | None = None
    seed: int = 0
    keyless: bool = False
    """Whether no key is needed, because nothing will be asked."""


class EndpointArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """`--model-arg` for endpoints: seconds a call may take, what images they take, OpenAI's `detail`."""

    timeout: Annotated[float, Meta(gt=0)] = 300.0
    max_side: Annotated[int, Meta(ge=0)] = 0
    max_bytes: Annotated[int, Meta(gt=0)] = 20 * 1024 * 1024
    detail: Literal["low", "high", "auto"] | None = None


class ServedArgs(EndpointArgs, frozen=True, forbid_unknown_fields=True):
    """`--model-arg` for servers that are started: also their flags as in a shell, the program that is run
    in place of the one of this environment, and seconds that loading may take."""

    flags: str = ""
    executable: str = ""
    startup: Annotated[float, Meta(gt=0)] = 1200.0


def resolve(spec: str, options: ModelOptions) -> list[Model]:
    """The models behind a name: one, or one for each of several addresses.

    Raises UserError for a name that means nothing, a missing key, an argument that the backend lacks.
    """
    named = options.config.models.get(spec)
    if named is not None:
        args, model_id = {**named.args, **options.args}, options.model_id or named.model_id
        options = replace(options, args=args, model_id=model_id)
        spec = named.spec
    prefix, make = model_factory(spec)
    models: list[Model] = make(spec.removeprefix(prefix), spec, options)
    if options.model_id is not None:
        for model in models:
            model.identity = options.model_id
    return models


def openai(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """`openai/gpt-4o`: OpenAI's own API, with the key in OPENAI_API_KEY."""
    if not rest:
        raise UserError("no model after 'openai/'", expected="openai/MODEL, such as openai/gpt-4o")
    return [_at(OPENAI, rest, spec, options, default_variable="OPENAI_API_KEY")]


def endpoint(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """`http://HOST/v1#MODEL`, or several addresses separated by commas for one model."""
    addresses, _, model = spec.partition("#")
    if not model:
        raise UserError(
            f"the address {spec} does not say which model", expected=f"{spec}#MODEL, as the server names it"
        )
    places = [address.strip().rstrip("/") for address in addresses.split(",")]
    return [_at(place, model, f"{','.join(places)}#{model}", options) for place in places]


def vllm(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """`vllm/ORG/NAME`, or `vllm/FOLDER`: vLLM, started and stopped."""
    return [_served(VLLM, rest, spec, options)]


def sglang(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """`sglang/ORG/NAME`, or `sglang/FOLDER`: SGLang, started and stopped."""
    return [_served(SGLANG, rest, spec, options)]


def hf(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """`hf/ORG/NAME` of the Hugging Face Hub, or `hf/FOLDER`: a model in this process, by transformers."""
    from sightline.models.local.args import LocalArgs
    from sightline.models.local.checkpoint import find_folder
    from sightline.models.local.model import LocalModel

    if not rest:
        raise UserError("no model after 'hf/'", expected="hf/ORG/NAME, or hf/FOLDER")
    args: LocalArgs = _arguments(options.args, LocalArgs)
    folder = find_folder(rest, args, fetch=not options.keyless)
    return [LocalModel(folder, name=spec, args=args, attachment=_attachment(args))]


def mini(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """`mini`: the embedded model, in single precision where nothing else is asked for."""
    from sightline.models.local.args import LocalArgs
    from sightline.models.local.model import LocalModel

    args: LocalArgs = _arguments({"dtype": "float32", **options.args}, LocalArgs)
    return [LocalModel(MINI, name=spec, args=args, version=spec, attachment=_attachment(args))]


def model_folder(spec: str) -> Path:
    """The folder with the config.json of a local model, `hf/...` or `mini`; weights need not be there, and
    are not fetched. Raises UserError."""
    from sightline.models.local.checkpoint import find_config

    if spec == "mini":
        return MINI
    refuse_remote(spec)
    return find_config(spec.removeprefix("hf/"))


def refuse_remote(spec: str) -> None:
    """Raise UserError for a name that is none of a local model, before a key is asked for."""
    if spec != "mini" and not spec.startswith("hf/"):
        raise UserError(f"{spec} is no local model", expected="hf/ORG/NAME, hf/FOLDER or mini")


def replay(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """`replay/FILE`: answers collected before."""
    _arguments(options.args, Struct)
    return [Replay(rest)]


def baseline(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """`baseline/chance`."""
    _arguments(options.args, Struct)
    if rest != "chance":
        raise unknown_name("model", spec, ["baseline/chance"])
    return [Chance(options.seed)]


def _attachment(args: LocalArgs) -> Attachment | None:
    """The adapter that is to be attached to a local model."""
    if args.adapter is None:
        return None
    from sightline.adapter.requirements import check_installed

    check_installed()
    from sightline.adapter.saved_adapter import SavedAdapter

    return SavedAdapter(Path(args.adapter))


def _at(
    address: str, model: str, spec: str, options: ModelOptions, default_variable: str | None = None
) -> OpenAICompatible:
    hostname, port = _place(address)
    host = options.config.host(hostname, port)
    return _client(
        address,
        model,
        _arguments(options.args, EndpointArgs),
        name=spec,
        identity=f"{spec.partition('#')[0] if '#' in spec else address} {model}",
        key=None if options.keyless else api_key(host, hostname, default_variable),
        proxy=host.proxy,
    )


def _client(address: str, model: str, args: EndpointArgs, **known: Any) -> OpenAICompatible:
    limits = ImageLimits(max_bytes=args.max_bytes, max_side=args.max_side)
    return OpenAICompatible(address, model, timeout=args.timeout, limits=limits, detail=args.detail, **known)


def _served(kind: Kind, model: str, spec: str, options: ModelOptions) -> Served:
    if not model:
        raise UserError(f"no model after '{spec}'", expected=f"{spec}ORG/NAME, or {spec}FOLDER")
    args = _arguments(options.args, ServedArgs)
    way = launch(kind, model, flags=args.flags, program=args.executable, starts=not options.keyless)

    def connect(address: str) -> OpenAICompatible:
        return _client(address, way.served, args, name=spec, identity=way.identity)

    return Served(way, connect, startup=args.startup)


def _place(address: str) -> tuple[str, int]:
    """The host and the port of an address. Raises UserError where it is none, or may hold what is secret."""
    if "@" in address or "?" in address:
        raise UserError(
            "the model's address holds a password or a query, which would end up in results",
            expected="a key variable for this host in sightline.toml",
        )
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise UserError(f"'{address}' is no address ({error})", expected=_ADDRESS) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"'{address}' is no address", expected=_ADDRESS)
    return parts.hostname, port


def _arguments(args: Mapping[str, Any], kind: type[Any]) -> Any:
    known = getattr(kind, "__struct_fields__", ())
    for name in args:
        if name not in known:
            if not known:
                raise UserError(f"this model takes no --model-arg, not even '{name}'")
            raise unknown_name("--model-arg", name, known)
    return read_values("--model-arg", args, kind) if known else None
