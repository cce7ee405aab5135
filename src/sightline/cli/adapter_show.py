"""`sightline adapter show`: describe an adapter, or compute the size of one for a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sightline.cli.adapter_train import adapter_config, add_kind
from sightline.cli.printing import print_json
from sightline.errors import UserError
from sightline.output import print_line

SUMMARY = "describe an adapter, or compute the size of one for a model"

EXAMPLE = """examples:
  sightline adapter show adapter
  sightline adapter show --kind bilstm --model hf/llava-hf/llava-1.5-7b-hf
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `adapter show`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("folder", nargs="?", metavar="DIR", help="output of `sightline adapter train`")
    add("--model", metavar="SPEC", help="hf/ORG/NAME, hf/FOLDER or mini; only its configuration is read")
    add_kind(parser)
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the description; returns the exit status."""
    from sightline.adapter.requirements import check_installed

    check_installed()
    if (options.folder is None) == (options.model is None):
        raise UserError("needs either DIR or --model", expected="one of them")
    described = _saved(Path(options.folder)) if options.folder is not None else _planned(options)
    if options.json:
        print_json(described)
        return 0
    for name, value in described.items():
        print_line(f"{name}: {f'{value:,}' if isinstance(value, int) else value}")
    return 0


def _saved(folder: Path) -> dict[str, Any]:
    """Describe a saved adapter."""
    import msgspec

    from sightline.adapter.saved_adapter import SavedAdapter

    saved = SavedAdapter(folder)
    metadata = saved.metadata
    return {
        "adapter": msgspec.to_builtins(metadata.adapter),
        "parameters": saved.parameters,
        "base": metadata.base,
        "training": dict(metadata.training),
        "images": len(metadata.images),
    }


def _planned(options: argparse.Namespace) -> dict[str, Any]:
    """Compute the size of an adapter for a model."""
    import msgspec

    from sightline.adapter.size import adapter_size
    from sightline.models.resolve import model_folder

    return msgspec.structs.asdict(adapter_size(model_folder(options.model), adapter_config(options)))
