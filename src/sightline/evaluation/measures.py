"""The models that measure responses without judging them: embedders and text metrics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sightline.benchmarks.base import Benchmark
from sightline.engine.store import Store
from sightline.evaluation.prepared import PreparedMeasures
from sightline.judging.measures import AnswerMeasures
from sightline.judging.similarity import Similarity, vector_scorer
from sightline.judging.text_metrics import TextMeasures, identities_of, loading, metrics_of
from sightline.models.embedder import embedder
from sightline.results.stored_run import StoredRun


def prepare_measures(benchmark: Benchmark, options: Mapping[str, Any]) -> PreparedMeasures:
    """Find the embedder and the text metrics that a benchmark uses under its options; no weights are loaded."""
    compares = vector_scorer(benchmark, options) is not None
    return PreparedMeasures(
        embedder=embedder(options["embedder"]) if compares else None, text_metrics=metrics_of(options)
    )


def answer_measures(
    benchmark: Benchmark,
    options: Mapping[str, Any],
    measures: PreparedMeasures,
    store: Store,
    *,
    show_progress: bool = False,
) -> AnswerMeasures:
    """Join measures with the store that caches them."""
    similarity, texts = None, None
    scorer, embedding_model = vector_scorer(benchmark, options), measures.embedder
    if scorer is not None and embedding_model is not None:
        identity = embedding_model.identity
        similarity = Similarity(scorer, identity, lambda: embedding_model, store, show_progress=show_progress)
    if measures.text_metrics:
        identities, load = identities_of(measures.text_metrics), measures.text_metrics.__getitem__
        texts = TextMeasures(identities, load, store, show_progress=show_progress)
    return AnswerMeasures(similarity=similarity, texts=texts)


def recorded_measures(benchmark: Benchmark, run: StoredRun, store: Store) -> AnswerMeasures:
    """The measures of a run as the store describes it; a model is loaded only where a number is not cached."""
    similarity, texts = None, None
    options, identity = run.description.benchmark_options, run.embedder
    scorer = vector_scorer(benchmark, options)
    if scorer is not None and identity:
        similarity = Similarity(scorer, identity, partial(embedder, options.get("embedder", "")), store)
    if run.text_metrics:
        texts = TextMeasures(run.text_metrics, loading(options), store)
    return AnswerMeasures(similarity=similarity, texts=texts)
