"""Reasoning in responses: it is cut in every form that models write it, and text about tags stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import UserError
from sightline.scoring.reasoning import NAMES, TOKENS, check_names, cut_reasoning, without_reasoning
from sightline.types import Answer

PIECES = [
    *(f"<{name}>" for name in NAMES),
    *(f"</{name}>" for name in NAMES),
    *TOKENS,
    *TOKENS.values(),
    "[THINK]",
    "[/THINK]",
    "◁think▷",
    "◁/think▷",
    "<THINK a='>'>",
    "<think/>",
    "<|start|>assistant",
    "<|channel|>analysis<|message|>",
    "<|channel|>final<|message|>",
    "<|end|>",
    "<|begin_of_box|>",
    "<|end_of_box|>",
    "analysisIs it",
    "assistantfinal",
    "```",
    "`",
    '"',
    "'",
    "\n",
    " ",
    " and ",
    "(A)?",
    "The tag ",
    " tag",
    "B.",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "form",
    [
        "<{0}>(A)?</{0}>B",
        "<{0}>\n(A)?\n</{0}>\n\nB\n",
        "  <{0}>(A)?</{0}> B",
        "<{0} time='3' by=\"a>b\">(A)?</{0}>B",
        "<{0}\n>(A)?</ {0} >B",
        "<{0}>(A)?</{0}><{0}>or (C)?</{0}>B",
        "<{0}>(A) <{0}>(C)</{0}> (D)?</{0}>B",
        "<{0}><{0}>(A)?</{0}>B",
        "(A)?</{0}>B",
        "(A)?</{0}>(C)?</{0}>B",
        "<{0}>(A)?</{0}>B</{0}>",
        "B <{0}>(A)?</{0}>",
        "<{0}/>B",
        "<{0}></{0}>B",
        "B\n<{0}>Or is it (A)? The answer is",
    ],
)
def test_what_stands_in_tags_is_cut_in_any_case(form: str, name: str) -> None:
    for response in (form.format(name), form.format(name.upper()), form.format(name.title())):
        answer, reasoning = cut_reasoning(response)
        assert answer == "B"
        assert ("(A)" in reasoning) == ("(A)" in response)


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("[THINK](A)?[/THINK]B", "B"),
        ("◁think▷(A)?◁/think▷B", "B"),
        ("<|START_THINKING|>(A)?<|END_THINKING|><|START_RESPONSE|>B<|END_RESPONSE|>", "B"),
        ("<|begin_of_thought|>(A)?<|end_of_thought|>\n\n<|begin_of_solution|>B<|end_of_solution|>", "B"),
        ("<|inner_prefix|>(A)?<|inner_suffix|>B", "B"),
        ("<|channel>thought\n(A)?\n<channel|>B", "B"),
        ("<|channel>thought\n<channel|>B", "B"),
        ("(A)?<channel|>B", "B"),
        ("<|channel|>analysis<|message|>(A)?<|end|><|start|>assistant<|channel|>final<|message|>B", "B"),
        ("<|start|>assistant<|channel|>final<|message|>B<|return|>", "B"),
        ("analysis<|message|>(A)?<|end|><|start|>assistant<|channel|>final<|message|>B", "B"),
        ("(A)?<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>B<|end|>", "B"),
        (
            "<|channel|>analysis<|message|>(A)?<|end|><|channel|>commentary<|message|>(C)<|end|>"
            "<|channel|>final<|message|>B",
            "B",
        ),
        ("<|channel|>analysis<|message|>It is (A), so the answer", ""),
        ("<|channel|>analysis", ""),
        ("analysisIs it (A)?assistantfinalB", "B"),
        ("analysisIs it (A)? The", ""),
        ("<think>(A)?</think><|begin_of_box|>B<|end_of_box|>", "B"),
        ("Not (A).\n<|begin_of_box|>B<|end_of_box|>.", "B"),
        ("<|begin_of_box|>B", "B"),
        ("B<|end_of_box|>", "B"),
        ("<think>(A)?</thinking>B", "B"),
        ("<think>It is (A)", ""),
        ("<think>It is (A)</thi", ""),
        ("<think>(A) <think>(C)</think> so it is (A)", ""),
        ("It is (A)</think>", ""),
        ("<think>The tag `</think>` ends this. (A)?</think>B", "B"),
        ('<think>It says "A"</think>"B"', '"B"'),
        ('It says "A"</think>"B"', '"B"'),
        ("It is<think>(A)?</think>B", "It is B"),
        ("```\n<think>(A)?</think>\nB\n```", "```\n\nB\n```"),
        ("<think>\n```\nx = 1\n</think>\nB", "B"),
    ],
)
def test_every_form_of_reasoning_is_cut(response: str, answer: str) -> None:
    assert cut_reasoning(response).answer == answer


@pytest.mark.parametrize(
    "response",
    [
        "I think B. My reasoning: it has no string, so the thought of (A) is wrong.",
        "The `<think>` tag. B",
        "Between `<think>` and `</think>` models reason. B",
        "It wrote `<think>(A)</think>`. B",
        "The sign reads “<think>”. B",
        'The sign reads "<THINK>". B',
        "The sign reads <THINK> in red. B",
        "The <think> tag opens, the </think> tag closes. B",
        "Models reason between <think> and </think>. B",
        "Put it into <think>...</think>. B",
        "The mark <think>x</think> is odd",
        "Like this:\n```xml\n<think>(A)</think>\n```\nB",
        "a < think > b, [thinking], (thought)",
        "<b>B</b> <answer>B</answer>",
        "analysis of the image: B",
        "The assistantfinal word",
        "",
        "  B\n",
    ],
)
def test_text_about_reasoning_stays_to_the_last_character(response: str) -> None:
    assert cut_reasoning(response) == (response, "")


def test_further_names_are_cut_too() -> None:
    response = "<SUMMARY>(A)?</SUMMARY><my:plan>(C)?</my:plan>B"
    assert cut_reasoning(response).answer == response
    assert cut_reasoning(response, ("summary", "my:plan")) == ("B", "(A)?\n\n(C)?")


@pytest.mark.parametrize("name", ["", "<plan>", "a b", "(plan", "|"])
def test_a_name_that_no_tag_has_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="--reasoning-tags"):
        check_names(["plan", name])


def test_reasoning_that_the_server_sent_apart_comes_first() -> None:
    answer = without_reasoning(Answer("<think>(A)?</think>B", reasoning="First."))
    assert (answer.text, answer.reasoning) == ("B", "First.\n\n(A)?")


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_an_answer_holds_no_more_reasoning(response: str) -> None:
    answer = cut_reasoning(response).answer
    assert cut_reasoning(answer).answer == answer


@given(st.text(st.characters(exclude_characters="<◁[|"), max_size=60))
def test_text_without_a_tag_stays(response: str) -> None:
    if not response.startswith(("analysis", "assistantfinal")):
        assert cut_reasoning(response) == (response, "")


def test_the_cases_are_cut(shared: Path) -> None:
    folder = shared / "cases" / "replies-and-files"
    bodies = folder / "reasoning-bodies.jsonl"
    if not bodies.is_file():
        pytest.skip(f"{bodies} does not exist")
    for line in bodies.read_text().splitlines():
        case = json.loads(line)
        content = case["body"]["choices"][0]["message"]["content"]
        assert cut_reasoning(content).answer == case["response"]
