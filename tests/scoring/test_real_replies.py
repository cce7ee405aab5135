"""What replies in public logs have that replies written for tests have not."""

from __future__ import annotations

import pytest

from sightline.scoring.chosen import read_choice
from sightline.scoring.free_answers import read_free_answer
from sightline.scoring.scorer import CORRECT, read_verdict

TOYS = ("a kite", "a drum", "a red boat", "a ball")
YES_NO = ("yes", "no")


@pytest.mark.parametrize(
    ("response", "options", "position"),
    [
        ("【分析】图中有两根鼓槌和圆形的鼓面。<eoe>\n【答案】B<eoa>", TOYS, 1),
        (
            "It has sails.\n\nAnswer: C<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnswer: A",
            TOYS,
            2,
        ),
        ("<s> drum </s>", TOYS, 1),
        ("<start_of_turn>model\nMan sieht zwei Stöcke. Antwort: B<end_of_turn>", TOYS, 1),
        ("<|im_start|>assistant\nNo<|im_end|>\n<|im_start|>user\nYes<|im_end|>", YES_NO, 1),
        ("Oui, il y en a deux.<|endoftext|>Non.", YES_NO, 0),
        ("</s>", ("<s>", "</s>", "<b>"), 1),
    ],
)
def test_a_control_token_is_no_text_and_what_follows_the_last_is_of_another_turn(
    response: str, options: tuple[str, ...], position: int | None
) -> None:
    assert read_choice(response, options).position == position


def test_control_tokens_are_cut_from_free_answers_and_verdicts_too() -> None:
    assert read_free_answer("tram</s>\nbus", ["bus"]).reference is None
    assert read_free_answer("bus<eos>", ["bus"]).rule == "holds the reference"
    assert read_free_answer("No<|im_end|>Yes", ["no"]).reference == "no"
    assert read_verdict("Judgement: No<|end_of_text|>Judgement: Yes", CORRECT) == "wrong"


@pytest.mark.parametrize(
    ("response", "options", "position"),
    [
        ("As outras opções, como a pipa (A) e a bola (D), não têm baquetas. Gabarito: B.", TOYS, 1),
        ("As demais alternativas (A, C, D) mostram outros objetos. A resposta correta é a letra B.", TOYS, 1),
        ("Let us go through each option:\nA. means that it flies.\nB. means that one hits it.\n"
         "C. means that it sails.\nD. means neither A nor C.\nThe best match is (B).", TOYS, 1),
        ("Betrachten wir jede Antwort: C. schwimmt. Es wird geschlagen, also B.", TOYS, 1),
    ],
)  # fmt: skip
def test_a_remark_on_other_options_or_on_each_is_no_statement(
    response: str, options: tuple[str, ...], position: int | None
) -> None:
    assert read_choice(response, options).position == position


@pytest.mark.parametrize(
    ("response", "options", "position"),
    [
        (r"\[ \oint B \, dl = \mu_0 I, \quad \Phi_{B} = \int B \cdot dA \]", ("2", "3", "5"), None),
        (r"The work is $W = F s$, where D is the distance and C = 5.", TOYS, None),
        (r"\boxed{\text{(C)}\ \sqrt{5}\cdot x}", ("$x$", "$2x$", r"$\sqrt5 x$"), 2),
        (r"\boxed{\frac{1}{3}r\sqrt{7}}", (r"$r\sqrt{2}$", r"$3r\sqrt{7}$"), None),
        (r"So we get \frac12.", ("1/2", "1/3"), 0),
        ("S = (2 + 4)/2 · 3 = 9 cm²", ("6 cm²", "9 cm²", "2 cm²"), 1),
    ],
)  # fmt: skip
def test_letters_and_numbers_within_a_formula_are_no_options(
    response: str, options: tuple[str, ...], position: int | None
) -> None:
    assert read_choice(response, options).position == position


@pytest.mark.parametrize(
    "response",
    [
        "There is a drum. The answer is (F).",
        "Das ist eine Trommel (B). Antwort: E.",
        "图中是鼓，不是A。答案：G",
    ],
)
def test_a_labelled_letter_that_no_option_has_leaves_nothing_to_read(response: str) -> None:
    assert read_choice(response, TOYS).position is None


def test_a_label_states_what_is_near_it() -> None:
    response = (
        "The solution is made of the salt and the water that was boiled before, thus 2 M. The answer is (C)."
    )
    assert read_choice(response, ("2 M", "3 M", "4 M")).position == 2


def test_two_letters_behind_a_label_are_no_choice() -> None:
    assert read_choice("【答案】：B，D<eoa>", TOYS).position is None


@pytest.mark.parametrize(
    ("response", "position"),
    [
        ("One beats it. The answer is (B).\n" + "The answer is (A).\nThe answer is (C).\n" * 3, 1),
        ("Sie tönt. Die Antwort ist B.\n\nAlle:\n" + "Die Antwort ist A.\nDie Antwort ist D.\n" * 2, 1),
        ("The answer is (A).\nThe answer is (C).\nThe answer is (D).\nThe answer is (B).", None),
        ("One beats it. The answer is (B).\nThe answer is (C).", None),
    ],
)  # fmt: skip
def test_a_list_of_answers_behind_the_answer_is_of_other_questions(
    response: str, position: int | None
) -> None:
    assert read_choice(response, TOYS).position == position


@pytest.mark.parametrize(
    ("question", "response", "position"),
    [
        ("Is Peru the largest exporter of copper?",
         "I do not have figures on Peru being the largest exporter of copper.", None),
        ("War der Export von Wein 2010 am höchsten?", "Ich habe keine Daten zum Export von Wein 2010.", None),
        ("¿Fue 2010 el año con más turistas?", "No tengo datos sobre los turistas del año 2010.", None),
        ("Was 2010 the year with the most tourists?", "2010 was not the year with the most tourists.", 1),
    ],
)  # fmt: skip
def test_who_lacks_the_data_says_neither_yes_nor_no(
    question: str, response: str, position: int | None
) -> None:
    assert read_choice(response, YES_NO, question).position == position


@pytest.mark.parametrize(
    ("question", "response", "position"),
    [
        ("According to the chart, is Peru the largest exporter?", "So Peru is not the largest exporter.", 1),
        ("Based on the photo, does the dog wear a collar?", "The dog does wear a collar.", 0),
        ("Among the four on the map, is Oslo the coldest?", "Oslo is the coldest.", 0),
        ("Among the four on the map, is Oslo the coldest?", "Bergen is the coldest.", None),
        ("Based on the photo, is the dog asleep?", "The photo does not clearly show the dog asleep.", None),
        ("Does the boy throw a ball?", "It does not look like the boy is making a ball.", None),
    ],
)  # fmt: skip
def test_what_frames_a_question_is_not_asked(question: str, response: str, position: int | None) -> None:
    assert read_choice(response, YES_NO, question).position == position
