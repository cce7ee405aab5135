"""Results to make tables of: those of a run over all of CODIS and of II-Bench, with any change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.types import MetricValue, Result

CATEGORIES = {
    "Location and Orientation": (84, 53),
    "Temporal Information": (95, 70),
    "Cultural Background": (47, 44),
    "Attributes": (75, 39),
    "Relationships": (52, 36),
}
WORDS = {"up:down": 30, "morning:afternoon": 12, "appropriate:not appropriate": 26}
DOMAINS = {"Life": 585, "Art": 85, "Society": 461, "Psychology": 152, "Environment": 51, "Others": 65}

LABELS: dict[str, dict[str, tuple[str, ...]]] = {
    "rephrasing": {},
    "restyling": {"style": ("candy", "mosaic", "udnie", "grayscale")},
    "context": {
        "colour": ("blue", "red", "green", "yellow", "white", "black"),
        "lines": ("1", "3", "5", "7"),
        "shape": ("rectangle", "ellipse"),
    },
}

Make = Callable[..., Result]


@pytest.fixture(scope="session")
def codis() -> Make:
    """A CODIS result of 353 pairs; keyword arguments replace fields of it."""
    return lambda **changes: _result("codis", "default", 353, 706, _codis_metrics(), changes)


@pytest.fixture(scope="session")
def iibench() -> Make:
    """An II-Bench result of 1,399 questions; keyword arguments replace fields of it."""
    options = {"split": "test", "extraction": "released", "prompt": "none", "image": True, "orders": 1}
    return lambda **changes: _result(
        "iibench", "none", 1399, 1399, _iibench_metrics(), {"options": options, **changes}
    )


@pytest.fixture(scope="session")
def mmr3() -> Make:
    """An MM-R3 result of one task (default: restyling); keyword arguments replace fields of it.

    `chosen` replaces options.
    """
    return _mmr3


def estimate(metric: str, subset: str, value: float, n: int, clusters: int, **more: Any) -> MetricValue:
    """A percentage, or a difference of two, with an interval of 4 points to either side."""
    low, high = max(0.0 if value >= 0 else -100.0, value - 4), min(100.0, value + 4)
    return MetricValue(metric, subset, value, n, clusters, low, high, "wilson", **more)


def _mmr3(task: str = "restyling", *, chosen: dict[str, Any] | None = None, **changes: Any) -> Result:
    groups, probes = {"rephrasing": (1172, 3516), "restyling": (1332, 5328), "context": (1500, 4500)}[task]
    labels = LABELS[task]
    metrics = []
    for name, value in (("acc", 12.25), ("s_gt", 16.75), ("con", 51.25), ("s_c", 68.25)):
        n = groups * 6 if task == "restyling" and name in ("con", "s_c") else probes
        metrics.append(estimate(name, "all", value, n, groups))
        metrics += [
            estimate(
                f"{name}_by_response" if name in ("con", "s_c") else name,
                f"{label}={held}",
                value - shift,
                probes // len(values),
                groups,
            )
            for label, values in labels.items()
            for shift, held in enumerate(values)
        ]
        metrics.append(estimate(f"{name}_minus_sampling", "all", -value / 2, n, groups))
    metrics += [estimate(f"{name}_failures", "all", 40.25, 900, 300) for name in ("s_gt", "con", "s_c")]
    options = {
        "task": task,
        "unchanged": False,
        "size": None,
        "empty": "count",
        "embedder": "all-MiniLM-L6-v2",
        "sampling": {"temperature": 0, "max_tokens": 512},
        **(chosen or {}),
    }
    return _result("mmr3", task, groups, probes, metrics, {"options": options, "undecided": 0, **changes})


def _result(
    benchmark: str,
    setting: str,
    samples: int,
    probes: int,
    metrics: list[MetricValue],
    changes: dict[str, Any],
) -> Result:
    result = Result(
        benchmark=benchmark,
        setting=setting,
        model="openai/gpt-4o",
        model_identity="api.openai.com gpt-4o",
        judge="rules",
        options={},
        samples=samples,
        probes=probes,
        errors=0,
        misses=0,
        undecided=3,
        truncated=1,
        versions={"sightline": "0.1.0", "reported": ["gpt-4o-2024-08-06"]},
        data_digest="d1",
        metrics=metrics,
    )
    return replace(result, **changes)


def _codis_metrics() -> list[MetricValue]:
    metrics = []
    for name, value, each in (("acc_p", 32.45, 1), ("acc_q", 56.25, 2), ("context_awareness", 54.75, 1)):
        metrics.append(estimate(name, "all", value, 353 * each, 216, judge="rules"))
        metrics += [
            estimate(name, f"category={category}", value - shift, pairs * each, clusters, judge="rules")
            for shift, (category, (pairs, clusters)) in enumerate(CATEGORIES.items())
        ]
    metrics.append(
        MetricValue("output_variability", "all", None, 0, 0, reason="no answers of setting no-context")
    )
    for name, value in (("bias_first", 50.0), ("bias_second", 40.0), ("bias_neither", 10.0)):
        metrics += [estimate(name, f"words={words}", value, n, n // 2) for words, n in WORDS.items()]
    return metrics


def _iibench_metrics() -> list[MetricValue]:
    metrics = []
    for name, value in (("accuracy", 71.25), ("error", 0.0), ("miss", 0.25)):
        metrics.append(estimate(name, "all", value, 1399, 1187))
        metrics += [estimate(name, f"domain={domain}", value, n, n - 9) for domain, n in DOMAINS.items()]
    return metrics
