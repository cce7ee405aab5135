"""The file sightline.toml (named models, hosts, prices; never an API key), and folders of this machine."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct, convert, field

from sightline.errors import UserError, did_you_mean, is_key_shaped
from sightline.text import UNDECODABLE, decode_toml, fault
from sightline.types import Usage

DEFAULT_FILE = "sightline.toml"

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


_Seconds = Annotated[float, Meta(gt=0)]


class BatchSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How --batch uses the batches of a host. The defaults are OpenAI's limits.

    Attributes:
        bytes: The most bytes of a file.
        poll: Seconds between the first two looks at a batch; each following pause is longer by half.
        slowest_poll: The longest pause, in seconds.
        appears: Seconds until a batch that was created is surely in the list of batches.
    """

    lines: Annotated[int, Meta(ge=1)] = 50_000
    bytes: Annotated[int, Meta(ge=1)] = 200_000_000
    window: str = "24h"
    poll: _Seconds = 5.0
    slowest_poll: _Seconds = 60.0
    appears: Annotated[float, Meta(ge=0)] = 30.0


class Host(Struct, frozen=True, forbid_unknown_fields=True):
    """A host, such as `api.openai.com` or `127.0.0.1:8000`: variable of its API key, proxy, batches.

    `key` names an environment variable. Its value is sent to this host only.
    """

    key: str | None = None
    proxy: str | None = None
    batch: BatchSettings = field(default_factory=BatchSettings)


_Word = Annotated[str, Meta(pattern=r"\A[^\s\x00-\x1f]+\Z", description="one word")]
_Line = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f]*\Z", description="one line")]
_Flag = Annotated[str, Meta(pattern=r"\A--?[A-Za-z][^\x00-\x1f]*\Z", description="a flag of sbatch")]


class SlurmProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """A `[slurm.NAME]` table: the jobs of `--on slurm:NAME`, one for each replica of a model.

    Attributes:
        poll: Seconds between two looks at the queue.
        startup: Seconds that a server may take to be ready.
    """

    replicas: Annotated[int, Meta(ge=1, le=10_000)] = 1
    processes: Annotated[int, Meta(ge=1, le=1024)] = 1
    partition: _Word | None = None
    account: _Word | None = None
    qos: _Word | None = None
    time: _Word | None = None
    gres: _Word | None = None
    nodes: Annotated[int, Meta(ge=1)] = 1
    cpus: Annotated[int, Meta(ge=1)] | None = None
    mem: _Word | None = None
    flags: tuple[_Flag, ...] = ()
    setup: tuple[_Line, ...] = ()
    container: _Line = ""
    python: _Line = ""
    address: _Line = "$(hostname)"
    folder: str = ""
    resubmits: Annotated[int, Meta(ge=0)] = 3
    poll: Annotated[float, Meta(ge=0.2)] = 5.0
    startup: _Seconds = 1800.0


class NamedModel(Struct, frozen=True, forbid_unknown_fields=True):
    """A model that the user named: its specification as for --model, and the arguments of its back end."""

    spec: str
    args: Mapping[str, Any] = field(default_factory=dict)
    model_id: str | None = None


_PER_TOKEN = 0.001
"""A price below this is one per token: o1-pro's is 0.0006, and no model costs so little per million."""


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """Cost per million tokens, in the currency of the user's choice: finite numbers, at least 0.

    `cached` is the price of the tokens of prompts that the server had in its prefix cache; None if they cost
    as much as the others. `batch` is the price of the same model with --batch; None if it is not given.
    """

    prompt: Annotated[float, Meta(ge=0)] = 0.0
    completion: Annotated[float, Meta(ge=0)] = 0.0
    batch: Price | None = None
    cached: Annotated[float, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        prices = (self.prompt, self.completion, self.cached or 0.0)
        if not all(map(math.isfinite, prices)):
            raise ValueError("a price is a finite number")
        if (price := next((one for one in prices if 0 < one < _PER_TOKEN), None)) is not None:
            # As OpenRouter's /models and LiteLLM's input_cost_per_token state it.
            raise ValueError(f"{price:g} is a price per token: write {price * 1e6:g}, per million tokens")

    def of(self, usage: Usage) -> float:
        """Compute the cost of tokens."""
        prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
        cached = min(usage.cached_tokens or 0, prompt) if self.cached is not None else 0
        at_full_price = (prompt - cached) * self.prompt + completion * self.completion
        return (at_full_price + cached * (self.cached or 0.0)) / 1e6


class RaySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The replicas of `--on ray`.

    Attributes:
        cpus: Processors of each; None for 1 with a GPU, otherwise for those of the smallest node.
        gpus: GPUs of each; None for 1 if the cluster has GPUs.
    """

    replicas: Annotated[int, Meta(ge=1)] | None = None
    cpus: Annotated[int, Meta(ge=1)] | None = None
    gpus: Annotated[int, Meta(ge=0)] | None = None
    restarts: Annotated[int, Meta(ge=0)] = 3


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file; each part may be absent."""

    models: Mapping[str, NamedModel] = field(default_factory=dict)
    hosts: Mapping[str, Host] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    slurm: Mapping[str, SlurmProfile] = field(default_factory=dict)
    ray: RaySettings = field(default_factory=RaySettings)

    def host(self, name: str, port: int) -> Host:
        """Find the entry of a host, by name and port or by name alone; an empty one if the file has none."""
        return self.hosts.get(f"{name}:{port}") or self.hosts.get(name) or Host()

    def price(self, model: str, *, in_batches: bool = False) -> Price | None:
        """Find the price of a model, by its whole name or by the part after '#' or the last '/'.

        Returns the price, that of single requests if there is none for batches; None if the file has none.
        """
        names = (model, model.rpartition("#")[2], model.rpartition("/")[2])
        price = next((self.prices[name] for name in names if name in self.prices), None)
        return price.batch if price is not None and price.batch is not None and in_batches else price

    def require_prices(self, models: Iterable[str]) -> None:
        """Check that the price of every model is known, as --max-cost needs."""
        for model in models:
            if self.price(model) is None:
                expected = f'[prices."{model}"] prompt and completion, per million tokens, in {DEFAULT_FILE}'
                raise UserError(f"--max-cost without a price for {model}", expected=expected)


_NAMED: dict[str, type[Struct]] = {
    "models": NamedModel,
    "hosts": Host,
    "prices": Price,
    "slurm": SlurmProfile,
}
"""The tables whose entries have names of the user."""

_SHOWN = (Price, SlurmProfile, RaySettings)
"""The tables whose values messages show: a key may have been pasted into the others."""

_EXPECTED = "[models.NAME], [hosts.NAME], [prices.NAME], [slurm.NAME] or [ray]"
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def load_config(file: str | None = None) -> Config:
    """Read a configuration; None reads that in SIGHTLINE_CONFIG, or ./sightline.toml if it exists."""
    named = file or os.environ.get("SIGHTLINE_CONFIG")
    path = Path(named or DEFAULT_FILE)
    if not named and not path.exists():
        return Config()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror})", file=path) from None
    tables = decode_toml(content, dict[str, Any], path, "a configuration", expected=_EXPECTED)
    read: dict[str, Any] = {}
    for name, value in tables.items():
        if name not in Config.__struct_fields__:
            raise UserError(
                f"unknown table [{name}]{did_you_mean(name, Config.__struct_fields__)}",
                file=path,
                expected=_EXPECTED,
            )
        if name not in _NAMED:
            read[name] = read_table(value, RaySettings, path, f"[{name}]")
            continue
        if not isinstance(value, dict):
            raise UserError("is no table", file=path, field=name, expected=_EXPECTED)
        read[name] = {
            key: read_table(entry, _NAMED[name], path, f"[{name}.{toml_key(key)}]")
            for key, entry in value.items()
        }
    return Config(**read)


def read_table(value: Any, kind: type[Struct], file: Path, name: str) -> Any:
    """Read a table. Raises UserError with its name, the field, and what is expected there."""
    try:
        return convert(value, kind)
    except UNDECODABLE as error:
        reason, _, where = fault(error).partition(" - at `$")
        inner = where.strip("`.")
        fields = _fields(kind, inner)
        if unknown := _UNKNOWN.fullmatch(reason):
            raise UserError(
                f"unknown field '{unknown[1]}'{did_you_mean(unknown[1], fields)}",
                file=file,
                record=name,
                field=inner or None,
                expected=f"one of {', '.join(fields)}",
            ) from None
        raise UserError(
            reason,
            file=file,
            record=name,
            field=inner or None,
            found=_found(value, inner) if kind in _SHOWN else None,
            expected=_choices(kind, inner) if inner else f"a table with {', '.join(fields)}",
        ) from None


def _fields(kind: type[Struct], inner: str) -> tuple[str, ...]:
    inside = {"batch": BatchSettings if kind is Host else kind}
    return inside.get(inner, kind).__struct_fields__


def _choices(kind: type[Struct], inner: str) -> str | None:
    """The words that a field may be; None if it is no choice of words."""
    hint = get_type_hints(kind).get(inner)
    words = [
        word for part in (hint, *get_args(hint)) if get_origin(part) is Literal for word in get_args(part)
    ]
    return f"one of {', '.join(words)}" if words else None


def _found(value: Any, inner: str) -> Any:
    return value.get(inner) if isinstance(value, dict) else value


def toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else f'"{key}"'


def api_key(host: Host, name: str, default_variable: str | None) -> str | None:
    """Read the API key of a host from its environment variable.

    `default_variable`: the variable if the entry names none; None for a host that needs no key. Returns the
    key; None if the host needs none.
    """
    variable = host.key or default_variable
    if variable is None:
        return None
    if not variable.isidentifier() or is_key_shaped(variable):
        # The message does not repeat the entry, because it may be a key that was pasted here.
        raise UserError(
            f"the key entry of {name} in sightline.toml is not the name of an environment variable",
            expected="the name of a variable that holds the key, not the key",
        )
    key = os.environ.get(variable, "").strip()
    if not key:
        # A lower-case name may be a key that was pasted here.
        shown = variable if _VARIABLE.fullmatch(variable) else "VARIABLE"
        named = f" {variable}" if shown == variable else " of its key entry"
        raise UserError(
            f"no API key for {name}: the environment variable{named} is not set",
            expected=f'export {shown}=..., or [hosts."{name}"] key = "OTHER_VARIABLE" in sightline.toml',
        )
    return key


# -- Folders of this machine that Sightline uses besides the user's data and results


def cache_folder() -> Path:
    """Return the user's cache folder: files that Sightline can make again."""
    import platformdirs

    return platformdirs.user_cache_path("sightline", appauthor=False)
