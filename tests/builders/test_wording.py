"""Other wordings ask for the same, or turn the answer for certain, and touch nothing that must stay."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.builders.wording import (
    KINDS,
    Wording,
    read_translation,
    reword,
    reword_groups,
    with_translations,
    with_typos,
    write_rewordings,
)
from sightline.cli.build_questions import WORDINGS
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.formats.groups import GroupLine, read_groups, write_groups
from sightline.scoring.letters import lettered, right_positions

WORDS = st.lists(st.from_regex(r"[A-Za-zé]{1,9}", fullmatch=True), min_size=1, max_size=12)
KEPT = st.sampled_from(["12", "B52", "3.5", "{name}", "<image>", '"STOP here"', "https://a.example/photo"])


def test_the_command_offers_every_kind() -> None:
    assert tuple(KINDS) == WORDINGS


def asked(prompt: str, *references: str, **known: object) -> GroupLine:
    return GroupLine("g", "asked", prompt=prompt, references=references, **known)  # type: ignore[arg-type]


def made(line: GroupLine, *kinds: str, **known: object) -> dict[str, GroupLine]:
    lines, _ = reword(line, Wording(kinds, **known))  # type: ignore[arg-type]
    return {one.variant: one for one in lines}


def reasons(line: GroupLine, *kinds: str) -> dict[str, str]:
    return reword(line, Wording(kinds))[1]


def distance(one: str, two: str) -> int:
    """The edit distance of two words where a swap of neighbours counts 1 (Damerau 1964)."""
    table = {(i, -1): i + 1 for i in range(-1, len(one))} | {(-1, j): j + 1 for j in range(-1, len(two))}
    for i, a in enumerate(one):
        for j, b in enumerate(two):
            ways = [table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a != b)]
            if i and j and a == two[j - 1] and b == one[i - 1]:
                ways.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(ways)
    return table[len(one) - 1, len(two) - 1]


@given(
    words=WORDS, kept=st.lists(KEPT, max_size=3), seed=st.integers(0, 99), rate=st.sampled_from([2, 5, 20])
)
def test_a_typo_is_one_edit_inside_a_word_and_touches_nothing_else(
    words: list[str], kept: list[str], seed: int, rate: float
) -> None:
    question = " ".join([*kept, *words]) + "?"
    lines = made(asked(question), "typos", rates=(rate,), seed=seed)
    if not any(len(word) >= 4 for word in words):
        assert not lines
        return
    (line,) = lines.values()
    prefix = " ".join([*kept, ""]) if kept else ""
    assert line.prompt.startswith(prefix)
    after = line.prompt[len(prefix) : -1].split(" ")
    changed = [(one, two) for one, two in zip(words, after, strict=True) if one != two]
    letters = sum(map(str.isalpha, question))
    assert 1 <= len(changed) <= max(1, round(letters * rate / 100))
    for one, two in changed:
        assert len(one) >= 4
        assert (one[0], one[-1]) == (two[0], two[-1])
        assert distance(one, two) == 1
    assert made(asked(question), "typos", rates=(rate,), seed=seed) == lines


def test_a_higher_rate_adds_to_the_typos_of_a_lower_one() -> None:
    question = (
        "Which material were these wonderful ancient vessels presumably manufactured from by their owners?"
    )
    lines = made(asked(question), "typos", rates=(2, 5, 10))
    texts = [question, *(one.prompt for one in lines.values())]
    wrong = [
        {n for n, (a, b) in enumerate(zip(question.split(), text.split(), strict=True)) if a != b}
        for text in texts
    ]
    assert [len(one) for one in wrong] == [0, 2, 4, 8]
    assert wrong[1] < wrong[2] < wrong[3]


def test_words_of_options_and_answers_get_no_typo() -> None:
    line = asked("Orange or violet flowers?", "orange", options=("orange", "violet"))
    for seed in range(20):
        (one,) = made(line, "typos", seed=seed, rates=(5,)).values()
        assert re.fullmatch(r"Orange or violet (?!flowers).+\?", one.prompt)


@given(words=WORDS, kept=KEPT)
def test_case_changes_only_case_and_not_what_is_kept(words: list[str], kept: str) -> None:
    question = f"{' '.join(words)} {kept} Why?"
    lines = made(asked(question), "case")
    assert lines["upper"].prompt == f"{' '.join(words).upper()} {kept} WHY?"
    assert lines["lower"].prompt == f"{' '.join(words).lower()} {kept} why?"


def test_letters_that_name_options_keep_their_case() -> None:
    line = asked("Is it A or B?", "A", options=("a bus", "a car"))
    assert made(line, "case")["lower"].prompt == "is it A or B?"


def test_only_the_question_of_a_prompt_is_reworded() -> None:
    line = asked(
        "Look. Which is it?\n(A) Red car\n(B) blue", "A", question="Which is it?", options=("Red car", "blue")
    )
    lines = made(line, "case", "templates", templates=("So: {question} {other}",))
    assert lines["upper"].prompt == "Look. WHICH IS IT?\n(A) Red car\n(B) blue"
    assert lines["template-1"].prompt == "Look. So: Which is it? {other}\n(A) Red car\n(B) blue"
    assert lines["template-1"].question == "So: Which is it? {other}"
    assert reasons(asked("Which?", question="Where?"), "case", "typos") == {
        "case": "its prompt does not hold its question once",
        "typos": "its prompt does not hold its question once",
    }


NEGATED = {
    "Is there a dog in the image?": "Is it false that there is a dog in the image?",
    "Are there dogs? Please answer yes or no.": "Is it false that there are dogs? Please answer yes or no.",
    "Can I turn here?": "Is it false that I can turn here?",
    "Is this a dog?": "Is it false that this is a dog?",
    "Is the animal a dog?": "Is it false that the animal is a dog?",
    "Does it have wheels?": "Is it false that it does have wheels?",
}


@pytest.mark.parametrize("question", NEGATED)
@pytest.mark.parametrize(("answer", "turned"), [("yes", "no"), ("No.", "yes")])
def test_a_negated_question_has_the_other_answer_in_a_group_of_its_own(
    question: str, answer: str, turned: str
) -> None:
    lines = made(asked(question, answer), "negation")
    assert lines["negated-false"].prompt == NEGATED[question]
    assert lines["negated-no"].prompt == f'Is "no" the right answer to this question: {question}'
    assert {(one.group, one.references) for one in lines.values()} == {("g@negated", (turned,))}


@pytest.mark.parametrize(
    "question",
    [
        "Is the bus near us red?",  # where the subject ends
        "Is the man holding a dog?",
        "Is this bus red?",
        "Isn't it red?",  # what a negation of a negation asks is not certain
        "Is it not red?",
        "Is there no dog?",
        "Is there a dog or a cat?",  # a choice
    ],
)
def test_a_question_whose_negation_is_not_certain_is_not_negated(question: str) -> None:
    assert "negated-false" not in made(asked(question, "yes"), "negation")


@pytest.mark.parametrize(
    ("question", "references", "options"),
    [
        ("What is it?", ["yes"], ()),
        ("Is it red? Why?", ["yes"], ()),
        ("Is it a bus?", ["a bus"], ()),
        ("Is it a bus?", ["yes", "no"], ()),
        ("Is it a bus?", [], ()),
        ("Is it a bus?", ["yes"], ("yes", "no", "maybe")),
    ],
)
def test_only_questions_for_yes_or_no_are_negated(
    question: str, references: list[str], options: tuple[str, ...]
) -> None:
    line = asked(question, *references, options=options)
    assert not made(line, "negation")
    assert list(reasons(line, "negation")) == ["negation"]


@given(
    subject=st.sampled_from(["it", "she", "there", "I"]), rest=st.from_regex(r"[a-z]{1,9}", fullmatch=True)
)
def test_a_question_that_is_negated_twice_has_its_first_answer(subject: str, rest: str) -> None:
    if reasons(asked(f"Was {subject} {rest}?", "A", options=("no", "yes")), "negation"):
        return
    once = made(asked(f"Was {subject} {rest}?", "A", options=("no", "yes")), "negation")["negated-false"]
    twice = made(once, "negation")["negated-false-negated-false"]
    assert once.references == ("B",)
    assert twice.references == ("A",)
    assert twice.prompt == f"Is it false that it is false that {subject} was {rest}?"


OPTIONS = st.lists(
    st.from_regex(r"[a-z]{2,6}( [a-z]{1,5}){0,2}", fullmatch=True), min_size=2, max_size=5, unique=True
)
FORMS = {
    "in brackets": lambda options: "Which?\n" + "\n".join(lettered(options)),
    "in one line": lambda options: (
        "Which? " + ", ".join(f"{a}. {b}" for a, b in zip("ABCDE", options, strict=False))
    ),
    "without letters": lambda options: "Which?\n" + "\n".join(f"- {one}" for one in options) + "\nOne word.",
}


@given(options=OPTIONS, right=st.integers(0, 4), form=st.sampled_from(sorted(FORMS)), by_letter=st.booleans())
def test_in_every_order_the_references_name_the_same_option_and_the_prompt_shows_it(
    options: list[str], right: int, form: str, by_letter: bool
) -> None:
    right %= len(options)
    reference = "ABCDE"[right] if by_letter else options[right]
    prompt = FORMS[form](options)
    line = asked(prompt, reference, options=tuple(options))
    if reasons(line, "options"):  # such as 'all these'
        return
    lines = made(line, "options")
    assert [one.options for one in lines.values()] == [
        (*options[number:], *options[:number]) for number in range(1, len(options))
    ]
    drawn = made(line, "options", orders=200)
    assert {one.options for one in drawn.values()} == {*permutations(options)} - {tuple(options)}
    for one in (*lines.values(), *drawn.values()):
        assert one.references == (options[right],)  # equal in all orders: only then does `agree` compare them
        assert {one.options[place] for place in right_positions(one.references, one.options)} == {
            options[right]
        }
        assert one.prompt == FORMS[form](list(one.options))
    assert made(line, "options", orders=3) == made(line, "options", orders=3)


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        ("Which?\n(A) red\n(B) blue\n(C) none of the above", ("red", "blue", "none of the above")),
        ("Which?\n(A) red\n(B) blue\n(C) A and B", ("red", "blue", "A and B")),
        ("Is option A right?\n(A) red\n(B) blue", ("red", "blue")),
        ("Is it red or blue?", ("red", "blue")),
    ],
)
def test_options_that_have_a_place_are_not_reordered(prompt: str, options: tuple[str, ...]) -> None:
    assert not made(asked(prompt, options[0], options=options), "options")


def test_the_question_may_speak_of_the_options_as_a_whole() -> None:
    line = asked("Which of the following is it?\n(A) red\n(B) blue", "A", options=("red", "blue"))
    assert made(line, "options")["rotated-1"].references == ("red",)


def test_a_translation_keeps_names_numbers_and_texts_in_quotes() -> None:
    line = asked('Does "STOP" stand on 2 signs?', "yes")
    assert read_translation("Steht „STOP“ auf 2 Schildern?\n", line) == ("Steht „STOP“ auf 2 Schildern?", "")
    for reply, objection in {
        "Steht „HALT“ auf 2 Schildern?": "the translation lost 'STOP'",
        'Steht "STOP" auf zwei Schildern?': "the translation lost '2'",
        "Here it is:\nSteht STOP auf 2 Schildern?": "the reply is not one line",
        'does "stop" stand on 2 signs': "the reply is the question itself",
    }.items():
        assert read_translation(reply, line) == (None, objection)


def test_the_file_keeps_every_line_and_can_be_reworded_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        GroupLine("a", "original", ("b.png",), "Is there a dog?", references=("yes",), response="yes"),
        GroupLine("b", "original", (), "Is it red?", references=("yes",), cluster="c"),
        GroupLine("b", "r1", (), "Is this red?", references=("yes",), labels={"quality": "low"}),
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.png").write_bytes(b"content")
    write_groups(lines, tmp_path / "in" / "groups.jsonl")
    command = ["build", "reword", str(tmp_path / "in"), "--kind", "negation", "--kind", "case", "--out"]
    assert main([*command, str(tmp_path / "out.jsonl")]) == 0
    made = read_groups(tmp_path / "out.jsonl")
    assert [(one.group, one.variant) for one in made] == [
        ("a", "original"),
        ("a", "asked"),
        ("a@negated", "negated-false"),
        ("a@negated", "negated-no"),
        ("a", "lower"),
        ("a", "upper"),
        ("b", "original"),
        ("b", "r1"),
        ("b@negated", "r1-negated-no"),
        ("b", "r1-lower"),
        ("b", "r1-upper"),
    ]
    assert {one.images for one in made[:6]} == {("in/b.png",)}
    assert len({one.cluster for one in made[:6]}) == 1
    assert {one.cluster for one in made[6:]} == {"c"}
    assert made[-1].labels == {"quality": "low", "wording": "upper case", "edits": "0-10 %"}
    assert "left out: 1, how its question is negated is not certain" in capsys.readouterr().err
    assert (
        main(
            [
                "build",
                "reword",
                str(tmp_path / "out.jsonl"),
                "--kind",
                "typos",
                "--out",
                str(tmp_path / "2.jsonl"),
            ]
        )
        == 0
    )
    assert main([*command, str(tmp_path / "out.jsonl")]) == 2
    assert "exists already" in capsys.readouterr().err
    (tmp_path / "aside").mkdir()
    with pytest.raises(UserError, match="is not above the images"):
        write_rewordings(
            list(with_translations(reword_groups(tmp_path / "out.jsonl", Wording(("case",))), {}, "")),
            tmp_path / "out.jsonl",
            tmp_path / "aside" / "out.jsonl",
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "nothing is to be reworded"),
        (["--kind", "case", "--rate", "3"], "--rate has no effect"),
        (["--language", "German"], "--language and --model belong together"),
        (["--kind", "typos", "--rate", "50"], "--rate is wrong"),
        (["--kind", "templates", "--template", "So"], "--template has no {question}"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    write_groups([asked("Is it?", "yes")], tmp_path / "a.jsonl")
    assert (
        main(["build", "reword", str(tmp_path / "a.jsonl"), "--out", str(tmp_path / "b.jsonl"), *options])
        == 2
    )
    assert message in capsys.readouterr().err


def test_typos_need_a_word() -> None:
    assert reasons(asked("Is it so, or B52?"), "typos") == {"typos": "its question has no word for a typo"}
    assert with_typos("Where?", 2, Random(1)) != "Where?"
