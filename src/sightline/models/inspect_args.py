"""The arguments and environment variables of an inspect provider: secrets are refused, addresses are found.

Only inspect knows which variables a provider reads for its address, and only once the provider exists.
Here they are found by their names before that, so that answers of different servers are never mixed up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from sightline.errors import UserError
from sightline.formats.digests import json_digest
from sightline.secret_text import is_secret_name

_FROM_ENVIRONMENT = "the environment variable that the provider reads"

_ADDRESS = re.compile(r"(^|_)(BASE_URL|API_BASE|ENDPOINT|ENDPOINT_URL(_[A-Z_]+)?)$")
_FOR_EVERY_PROVIDER = "INSPECT_EVAL_MODEL_BASE_URL"

# Prefixes of the variables of inspect's own providers.
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_",),
    "azureai": ("AZURE_", "AZUREAI_"),
    "bedrock": ("BEDROCK_", "AWS_"),
    "cloudflare": ("CLOUDFLARE_",),
    "deepseek": ("DEEPSEEK_",),
    "fireworks": ("FIREWORKS_",),
    "google": ("GOOGLE_",),
    "grok": ("XAI_", "GROK_"),
    "groq": ("GROQ_",),
    "hf-inference-providers": ("HF_INFERENCE_PROVIDERS_",),
    "litellm-proxy": ("LITELLM_",),
    "llama-cpp-python": ("LLAMA_CPP_PYTHON_",),
    "meta": ("META_",),
    "mistral": ("MISTRAL_",),
    "moonshot": ("MOONSHOT_",),
    "ollama": ("OLLAMA_",),
    "openai": ("OPENAI_",),
    "openai-api": (),
    "openai-api-completions": (),
    "openrouter": ("OPENROUTER_",),
    "perplexity": ("PERPLEXITY_",),
    "sagemaker": ("AWS_",),
    "sambanova": ("SAMBANOVA_",),
    "sglang": ("SGLANG_",),
    "together": ("TOGETHER_",),
    "vllm": ("VLLM_",),
    "vllm-completions": ("VLLM_",),
}
_CLOUDS: Mapping[str, tuple[str, ...]] = {
    "azure": ("AZURE_", "AZUREAI_"),
    "bedrock": ("BEDROCK_", "AWS_"),
    "vertex": ("VERTEX_", "GOOGLE_"),
}
"""Variables of clouds that host models of other providers: `openai/azure/NAME`."""
_IN_PROCESS = ("hf", "mockllm", "nnterp", "none", "transformer_lens")
"""Providers of inspect that send nothing to a server."""


def refuse_secrets(passed: Mapping[str, Any]) -> None:
    """Refuse arguments that hold a secret."""
    for name in _names(passed):
        if is_secret_name(name):
            raise UserError(
                f"--model-arg {name} contains a secret, which would be written to the results",
                expected=_FROM_ENVIRONMENT,
            )
    address = _split(str(passed.get("base_url", "")), "--model-arg base_url")
    if address.username or address.password or address.query:
        raise UserError(
            "--model-arg base_url contains a password or a query, which would be written to the results",
            expected=_FROM_ENVIRONMENT,
        )


def addresses(model: str, passed: Mapping[str, Any]) -> list[str]:
    """Find the addresses that are configured for a model.

    For a provider that is not inspect's own, all variables that may hold an address count.

    Returns:
        Sorted addresses without passwords and queries; none if the provider uses its default.
    """
    if passed.get("base_url"):
        return [str(passed["base_url"])]
    provider, *path = model.split("/")
    if provider in _IN_PROCESS:
        return []
    begins = _beginnings(provider, path)
    return sorted(
        {
            _bare(value, variable)
            for variable, value in os.environ.items()
            if value
            and _ADDRESS.search(variable)
            and (variable == _FOR_EVERY_PROVIDER or variable.startswith(begins))
        }
    )


def host_of(model: str, named: Sequence[str]) -> str:
    """Find what shares a rate limit."""
    host = _split(named[0], "base_url").netloc if len(named) == 1 else ""
    return host or f"inspect/{model.partition('/')[0]}"


def identity_of(model: str, named: Sequence[str], passed: Mapping[str, Any]) -> str:
    """Build the identity of a model: name, addresses, arguments; arguments with several values by digest."""
    arguments = {**passed, "base_url": ",".join(named)} if named else passed
    return " ".join(
        [
            f"inspect {model}",
            *(
                f"{name}={value if isinstance(value, str | int | float) else _digest(value)}"
                for name, value in sorted(arguments.items())
            ),
        ]
    )


def _beginnings(provider: str, path: Sequence[str]) -> tuple[str, ...]:
    """Prefixes of the variables that may hold the address of a provider; '' matches all."""
    if provider not in _VARIABLES:
        return ("",)
    begins = _VARIABLES[provider]
    if len(path) > 1:
        begins += _CLOUDS.get(path[0], ())
        if provider.startswith("openai-api"):
            begins += (f"{path[0].upper().replace('-', '_')}_",)
    return begins


def _bare(address: str, variable: str) -> str:
    parts = _split(address, f"the environment variable {variable}")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().lstrip("/")


def _split(address: str, source: str) -> SplitResult:
    try:
        # Some providers accept a host without a scheme, which urlsplit would parse as a path.
        return urlsplit(address if "://" in address or not address else f"//{address}")
    except ValueError as error:
        raise UserError(
            f"{source} is not a valid URL ({error})", expected="such as http://host:8000/v1"
        ) from None


def _names(value: Any, within: str = "") -> Iterator[str]:
    """The names of all arguments; nested ones follow a dot."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield f"{within}{name}"
            yield from _names(inner, f"{within}{name}.")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _names(inner, within)


def _digest(value: Any) -> str:
    """The digest of a value; for objects that only Python can pass, such as a client, of their type."""
    return json_digest(value, lambda thing: type(thing).__qualname__)[:16]
