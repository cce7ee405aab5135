"""The key of a plan: the digest of everything that the probes and requests of an evaluation depend on."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from sightline.evaluation.code_digest import is_own, unchanged_code
from sightline.evaluation.planning import plan_settings
from sightline.evaluation.prepared import PreparedModels, PreparedTask
from sightline.plan.spec import Spec

NOT_PLANNED = frozenset(
    {
        *("judge", "decide", "judge_gen", "judge_repeats"),
        *("store", "out", "force", "against", "fail_if", "name", "tag"),
        *("concurrency", "max_requests", "max_cost", "retry_errors", "batch"),
        *("fingerprint", "accept_changed"),
    }
)
"""The options that no probe and no request depends on. All others are part of the key."""


def plan_key(spec: Spec, task: PreparedTask, models: PreparedModels) -> bytes | None:
    """Compute the key of the plan of an evaluation. Its images are not part of it.

    It covers the code of the package, the options, the identity, the defaults and the limits of the model,
    and every byte of the files that the samples are read from.

    Args:
        spec: The evaluation.
        task: The task.
        models: The model.

    Returns:
        A SHA-256; None if the plan may depend on anything else: code of a plugin or code that changed, a
        model that replays answers, text instead of images, or a benchmark that names no files.
    """
    model = models.models[0] if models.models else None
    files = task.benchmark.source_files(task.folder, task.split, task.options.benchmark)
    code = unchanged_code()
    if model is None or files is None or code is None or not (is_own(task.benchmark) and is_own(model)):
        return None
    if not all(file.is_file() for file in files):
        return None  # A pipe can be read once only.
    if model.capabilities.replays or models.replacement is not None:
        return None
    options = {name: value for name, value in msgspec.to_builtins(spec).items() if name not in NOT_PLANNED}
    settings = plan_settings(spec, task, model)
    try:
        content = [
            *(options, task.benchmark.name, task.setting, task.split, str(task.folder)),
            *(settings, model.identity, model.capabilities),
            [(str(file), _content_digest(file)) for file in files],
        ]
    except OSError:
        return None  # The first pass over the samples says what is wrong.
    return hashlib.sha256(code + msgspec.json.encode(content, order="deterministic")).digest()


def _content_digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
