"""The model of Dawid and Skene against their example, crowd-kit, and populations with known error rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.metrics.label_quality import (
    FEWEST_ITEMS,
    ONE_LABEL,
    TOO_FEW_ANNOTATORS,
    LabelModel,
    LabelQuality,
    Vote,
    dawid_skene,
    label_quality,
)

CLASSIC = """
111 1111, 333 4334, 112 2122, 222 3121, 222 3222, 222 3322, 122 2111, 333 3433, 222 2223, 232 2223, 444 4444,
222 3343, 111 1111, 222 3212, 121 1111, 111 2111, 111 1111, 111 1111, 222 2221, 222 1322, 222 2222, 222 2221,
222 3222, 221 2222, 111 1111, 111 1111, 232 2222, 111 1111, 111 1111, 112 1121, 111 1111, 333 3233, 111 1111,
222 2222, 222 3232, 433 4343, 221 2232, 232 3233, 333 3432, 111 1111, 111 1111, 121 2111, 232 2222, 121 1111,
222 2222
"""
"""Table 1 of Dawid and Skene (1979): 45 patients; the first of five observers assessed them three times."""


def classic() -> list[Vote]:
    return [
        Vote(f"patient {patient}", observer, label)
        for patient, line in enumerate(CLASSIC.split(","), 1)
        for observer, labels in zip("12345", (line.split()[0], *line.split()[1]), strict=True)
        for label in labels
    ]


def fitted(votes: list[Vote], most_iterations: int = 2_000, pseudo_counts: float = 0) -> LabelModel:
    """The maximum-likelihood estimate, which the paper and crowd-kit print, unless a prior is given."""
    model = dawid_skene(votes, most_iterations, pseudo_counts)
    assert isinstance(model, LabelModel)
    return model


def quality(votes: list[Vote]) -> LabelQuality:
    found = label_quality(votes)
    assert isinstance(found, LabelQuality)
    return found


def test_the_example_of_the_paper_gives_its_printed_estimates() -> None:
    """Table 2: the shares of the four classes, and the error rates of the first observer."""
    model = fitted(classic())
    assert model.prior == pytest.approx([0.40, 0.42, 0.11, 0.07], abs=0.005)
    assert model.confusion[0] == pytest.approx(
        np.array([[0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0], [0, 0.34, 0.66, 0], [0, 0, 0.56, 0.44]]),
        abs=0.005,
    )


def test_the_example_of_the_paper_equals_crowd_kit_to_a_millionth() -> None:
    """What DawidSkene of crowd-kit 1.4.2 gives after 500 iterations, with its labels sorted."""
    model = fitted(classic())
    assert model.prior == pytest.approx([0.399554753, 0.421983392, 0.111795189, 0.066666667], abs=1e-6)
    first = [
        [0.889488349, 0.110511651, 0, 0],
        [0.070585451, 0.876379937, 0.053034613, 0],
        [0, 0.338821540, 0.661178460, 0],
        [0, 0, 0.555555556, 0.444444444],
    ]
    assert model.confusion[0] == pytest.approx(np.array(first), abs=1e-6)
    likely = {
        "patient 7": [0.981020, 0.018980, 0, 0],
        "patient 30": [0.999146, 0.000854, 0, 0],
        "patient 35": [0, 0.947995, 0.052005, 0],
        "patient 38": [0, 0.021200, 0.978800, 0],
    }
    for patient, expected in likely.items():
        assert model.posteriors[model.items.index(patient)] == pytest.approx(expected, abs=2e-6)


def test_simulated_votes_give_what_crowd_kit_gives() -> None:
    """DawidSkene of crowd-kit 1.4.2 after 52 iterations on the same votes."""
    votes, _, _ = simulated(np.random.default_rng(0), items=200, annotators=6, each=4)
    model = fitted(votes, 60)
    assert model.iterations == 52
    assert model.posteriors[:4] == pytest.approx(
        np.array(
            [
                [0, 0.000570679, 0.999429321],
                [0.003515805, 0.880194630, 0.116289564],
                [0, 0.000681323, 0.999318677],
                [0, 0.217619997, 0.782380003],
            ]
        ),
        abs=1e-6,
    )
    assert model.posteriors.mean(axis=0) == pytest.approx([0.338731105, 0.281852551, 0.379416344], abs=1e-6)
    assert float((model.posteriors**2).sum()) == pytest.approx(190.434007, abs=1e-4)
    rates = dict(zip(model.annotators, model.confusion, strict=True))
    assert rates["annotator 3"] == pytest.approx(
        np.array(
            [
                [0.742222637, 0.185438099, 0.072339265],
                [0.026241499, 0.866728759, 0.107029741],
                [0.080173370, 0.160381648, 0.759444983],
            ]
        ),
        abs=1e-6,
    )


def simulated(
    random: np.random.Generator, items: int, annotators: int, each: int
) -> tuple[list[Vote], list[str], np.ndarray]:
    """Votes of annotators with known error rates, the true labels, and the rates."""
    labels = "abc"
    rates = 0.35 * random.dirichlet(np.ones(3), (annotators, 3)) + 0.65 * np.eye(3)
    truth = random.integers(0, 3, items)
    votes = [
        Vote(
            f"item {item}",
            f"annotator {annotator}",
            labels[random.choice(3, p=rates[annotator, truth[item]])],
        )
        for item in range(items)
        for annotator in random.choice(annotators, each, replace=False)
    ]
    return votes, [labels[one] for one in truth], rates


def test_the_prior_is_a_vote_in_each_cell_and_a_second_one_on_the_diagonal() -> None:
    """With certain true labels, the rates are the counts with the prior's."""
    labels = {f"item {number}": "yes" if number < 6 else "no" for number in range(10)}
    votes = [Vote(item, f"sure {n}", label) for item, label in labels.items() for n in range(30)]
    votes += [Vote(item, "one", "no" if item == "item 0" else label) for item, label in labels.items()]
    model = fitted(votes, pseudo_counts=1)
    no, yes = model.confusion[model.annotators.index("one")]
    assert model.labels == ("no", "yes")
    assert no == pytest.approx([(4 + 2) / (4 + 3), 1 / (4 + 3)], abs=1e-6)
    assert yes == pytest.approx([(1 + 1) / (6 + 3), (5 + 2) / (6 + 3)], abs=1e-6)


@pytest.mark.slow
def test_of_few_votes_the_labels_are_better_with_the_prior_and_about_as_good_as_the_majority() -> None:
    """60 draws of 60 items, and three annotators who are right in 0.8 of them."""
    with_prior, without, by_majority = 0, 0, 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        truth = random.integers(0, 2, 60)
        accuracy = (0.8, 0.8, 0.8)
        votes = [
            Vote(f"{item}", f"{number}", "ab"[truth[item] if random.random() < share else 1 - truth[item]])
            for item in range(60)
            for number, share in enumerate(accuracy)
        ]
        right = {f"{item}": "ab"[label] for item, label in enumerate(truth)}
        for one in quality(votes).items:
            with_prior += one.likely == right[one.item]
            by_majority += one.majority == right[one.item]
        model = fitted(votes)
        best = zip(model.items, model.posteriors.argmax(axis=1), strict=True)
        without += sum(model.labels[label] == right[item] for item, label in best)
    assert with_prior > without + 60
    assert abs(with_prior - by_majority) < 60


def test_few_items_have_no_order_and_an_estimate_that_did_not_converge_is_said() -> None:
    few = quality(classic())
    assert [one.item for one in few.items] == list(dict.fromkeys(vote.item for vote in classic()))
    assert few.notes() == [
        "45 items, fewer than 100: too few to order for adjudication",
    ]
    votes, _, _ = simulated(np.random.default_rng(0), items=FEWEST_ITEMS, annotators=6, each=4)
    many = quality(votes)
    losses = [one.loss for one in many.items]
    assert losses == sorted(losses, reverse=True)
    assert many.notes() == []
    assert "did not converge in" in replace(many, converged=False).notes()[0]


@pytest.mark.slow
def test_known_error_rates_are_found_and_the_labels_are_better_than_the_majority() -> None:
    votes, truth, rates = simulated(np.random.default_rng(5), items=3_000, annotators=5, each=5)
    model = fitted(votes)
    order = [model.annotators.index(f"annotator {number}") for number in range(5)]
    assert model.confusion[order] == pytest.approx(rates, abs=0.05)
    found = quality(votes)
    right = dict(zip([f"item {number}" for number in range(3_000)], truth, strict=True))
    likely = sum(one.likely == right[one.item] for one in found.items)
    most = sum(one.majority == right[one.item] for one in found.items)
    assert likely > most
    named = {one.annotator: one for one in found.annotators}
    for number in range(5):
        own = [vote for vote in votes if vote.annotator == f"annotator {number}"]
        share = sum(right[vote.item] == vote.label for vote in own) / len(own)
        assert named[f"annotator {number}"].accuracy == pytest.approx(share, abs=0.02)


@pytest.mark.slow
def test_the_promised_loss_is_the_share_of_wrong_majorities() -> None:
    """The probabilities are calibrated: the sum of the losses is the number of wrong labels that count."""
    votes, truth, _ = simulated(np.random.default_rng(6), items=4_000, annotators=6, each=3)
    right = dict(zip([f"item {number}" for number in range(4_000)], truth, strict=True))
    found = quality(votes)
    wrong = [one for one in found.items if (one.majority or one.likely) != right[one.item]]
    assert sum(one.loss for one in found.items) == pytest.approx(len(wrong), rel=0.1)
    first = {one.item for one in found.items[: len(found.items) // 10]}
    assert sum(one.item in first for one in wrong) > 3 * len(wrong) / 10


def test_a_vote_of_an_annotator_who_is_always_wrong_counts_for_the_other_label() -> None:
    good, bad = ("ann", "ben", "cleo"), "dirk"
    labels = {f"item {number}": ("yes", "no")[number % 2] for number in range(120)}
    votes = [Vote(item, name, label) for item, label in labels.items() for name in good]
    votes += [Vote(item, bad, {"yes": "no", "no": "yes"}[label]) for item, label in labels.items()]
    found = quality([*votes, Vote("last", bad, "no")])
    last = next(one for one in found.items if one.item == "last")
    assert (last.majority, last.likely) == ("no", "yes")
    assert found.items[0] == last  # the majority is wrong almost certainly
    assert {one.annotator: round(one.accuracy) for one in found.annotators} == {
        "ann": 1,
        "ben": 1,
        "cleo": 1,
        "dirk": 0,
    }


def test_two_annotators_have_no_error_rates() -> None:
    """With two of them, several rates explain the votes equally well."""
    votes = [
        Vote(f"item {n}", name, label) for n in range(5) for name, label in (("ann", "yes"), ("ben", "no"))
    ]
    assert label_quality(votes) == TOO_FEW_ANNOTATORS
    assert label_quality([*votes, Vote("alone", "cleo", "yes")]) == TOO_FEW_ANNOTATORS
    assert label_quality([]) == TOO_FEW_ANNOTATORS


def test_equal_votes_have_no_error_rates() -> None:
    assert label_quality([Vote("item", name, "yes") for name in ("ann", "ben", "cleo")]) == ONE_LABEL


@given(
    st.lists(
        st.builds(
            Vote, st.sampled_from("pqrst"), st.sampled_from(["ann", "ben", "cleo"]), st.sampled_from("xyz")
        ),
        max_size=40,
    )
)
@settings(deadline=None)
def test_every_estimate_is_a_distribution(votes: list[Vote]) -> None:
    model = dawid_skene(votes)
    if isinstance(model, LabelModel):
        assert model.posteriors.sum(axis=1) == pytest.approx(1)
        assert model.confusion.sum(axis=2) == pytest.approx(1)
        assert model.prior.sum() == pytest.approx(1)
        assert (model.posteriors >= 0).all()


@given(st.permutations(classic()))
@settings(max_examples=5, deadline=None)
def test_the_order_of_the_votes_does_not_matter(votes: list[Vote]) -> None:
    expected = {one.item: one.posterior for one in quality(classic()).items}
    for one in quality(votes).items:
        assert one.posterior == pytest.approx(expected[one.item], abs=1e-6)
