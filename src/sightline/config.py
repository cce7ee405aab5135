"""sightline.toml: named models, the key variable and proxy of each host, prices. Never a key itself."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.errors import UserError
from sightline.types import Usage

DEFAULT_FILE = "sightline.toml"


class Host(Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a host (`api.openai.com`, or `127.0.0.1:8000`): where its key is, and its proxy.

    `key` names an environment variable; its value is sent to this host and to no other.
    """

    key: str | None = None
    proxy: str | None = None


class NamedModel(Struct, frozen=True, forbid_unknown_fields=True):
    """A model under a name of the user's: what it stands for, and its backend arguments."""

    spec: str
    args: Mapping[str, Any] = field(default_factory=dict)
    model_id: str | None = None


class Price(Struct, frozen=True):
    """Money per million tokens, in whatever currency the user's file means."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, usage: Usage) -> float:
        """The money that these tokens cost."""
        return (
            (usage.prompt_tokens or 0) * self.prompt + (usage.completion_tokens or 0) * self.completion
        ) / 1e6


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file; every part may be absent."""

    models: Mapping[str, NamedModel] = field(default_factory=dict)
    hosts: Mapping[str, Host] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)

    def host(self, name: str, port: int) -> Host:
        """What the file says of a host, by name and port or by name alone."""
        return self.hosts.get(f"{name}:{port}") or self.hosts.get(name) or Host()

    def price(self, model: str) -> Price | None:
        """The price of a model, by its whole name or by what follows '#' or '/' in it."""
        names = (model, model.rpartition("#")[2], model.rpartition("/")[2])
        return next((self.prices[name] for name in names if name in self.prices), None)


def load_config(file: str | None = None) -> Config:
    """The configuration in `file`, SIGHTLINE_CONFIG or ./sightline.toml; empty where there is none.

    Raises UserError where a named file is missing, or is no TOML of this shape.
    """
    named = file or os.environ.get("SIGHTLINE_CONFIG")
    path = Path(named or DEFAULT_FILE)
    if not named and not path.exists():
        return Config()
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Config)
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror})", file=path) from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"is not TOML: {error}", file=path) from None
    except msgspec.ValidationError as error:
        raise UserError(
            str(error), file=path, expected="[models.NAME] spec, [hosts.NAME] key/proxy, [prices.NAME]"
        ) from None


def api_key(host: Host, name: str, default_variable: str | None) -> str | None:
    """The key for a host, from the environment variable that belongs to it.

    Raises UserError where a variable is named and empty: no call could succeed.
    """
    variable = host.key or default_variable
    if variable is None:
        return None
    if not variable.isidentifier():
        # Not repeated: whoever pasted a key here does not want it on a screen.
        raise UserError(
            f"the key entry of {name} in sightline.toml is no name of an environment variable",
            expected="the name of a variable that holds the key, never the key itself",
        )
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(
            f"no API key for {name}: the environment variable {variable} is not set",
            expected=f'export {variable}=..., or [hosts."{name}"] key = "OTHER_VARIABLE" in sightline.toml',
        )
    return key
