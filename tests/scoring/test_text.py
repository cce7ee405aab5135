"""The answer part and the words of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.scoring.text import answer_part, content, folded, normalised, sentences, stem, words


def test_the_answer_part_is_what_follows_the_last_newline() -> None:
    assert answer_part("It is morning.\nThe sun is in the east.\nWest.") == "West."


def test_newlines_at_the_end_do_not_count() -> None:
    assert answer_part("Reasons.\n\nWest.\r\n\n") == "West."


def test_an_output_of_one_line_is_all_answer() -> None:
    assert answer_part("The airplane is flying west.") == "The airplane is flying west."


def test_an_escaped_newline_parts_an_output_that_holds_no_real_one() -> None:
    assert answer_part(r"The sun sets in the west. \nWest") == "West"
    assert answer_part(r"The meat is past its date.\n\nNo.\n") == "No."


def test_beside_a_real_newline_an_escaped_one_is_text() -> None:
    assert answer_part("Reasons.\nopen C:\\new") == "open C:\\new"


@pytest.mark.parametrize(
    "end",
    [
        "```",
        "~~~",
        "```text",
        "---",
        "***",
        "___",
        "===",
        "}",
        "}]",
        ".",
        "…",
        "😀",
        "✅",
        "</answer>",
        "<|im_end|>",
        "</s>",
        "<br>",
        "\\end{align}",
        "\\]",
        "$$",
        "|",
        "&nbsp;",
        "───",
        "\u200b",
    ],
)
@pytest.mark.parametrize("answer", ["West.", "**West**", "8:15", "是", "°F", '"answer": "West"'])
def test_a_last_line_without_a_word_is_no_answer(answer: str, end: str) -> None:
    for outcome in (f"Reasons.\n{answer}\n{end}", f"```\n{answer}\n\n{end}\n{end}\n", f"{answer}\n{end}"):
        assert answer_part(outcome) == answer


def test_an_output_without_any_word_is_its_last_line() -> None:
    assert [answer_part(output) for output in ("", "\n", "```", "---\n👍\n")] == ["", "", "```", "👍"]


@given(st.text(alphabet=st.characters(exclude_characters="\r\n\\<&`~"), min_size=1).filter(words))
def test_reasoning_before_an_answer_leaves_the_answer_part_as_it_is(answer: str) -> None:
    assert answer_part(f"First this.\nThen that.\n{answer}\n") == answer.strip()


def test_words_are_whole_words_without_case_and_signs() -> None:
    assert words("**West**, of COURSE!") == ("west", "of", "course")


@pytest.mark.parametrize(
    "spelling", ["Counterclockwise", "counter-clockwise", "Anti clockwise", "anticlockwise"]
)
def test_the_spellings_of_counterclockwise_are_one_word(spelling: str) -> None:
    assert words(spelling) == ("counterclockwise",)


def test_contractions_are_written_out() -> None:
    assert words("It can't; it isn’t, I won't") == words("It can not; it is not, I will not")


@pytest.mark.parametrize(
    "forms",
    [
        "up upward upwards",
        "north northern northwards",
        "close closes closed closing",
        "leave leaves leaving",
        "put puts putting",
        "take takes took taken taking",
        "hibernate hibernating hibernation",
        "bright brighter",
        "fly flies flew flying",
    ],
)
def test_inflections_share_a_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


def test_different_words_keep_different_stems() -> None:
    apart = "clockwise counterclockwise north northeast left leave forward for toward to morning more"
    assert len({stem(word) for word in apart.split()}) == 12


@pytest.mark.parametrize(
    ("form", "usual"),
    [
        ("Ｒｅｄ　Ｂｕｓ", "red bus"),
        ("４２", "42"),
        ("٤٢", "42"),
        ("४२", "42"),
        ("۴۲ ৪২ ๔๒ 𝟒𝟐", "42 42 42 42"),
        ("٣٫٥", "3.5"),
        ("Straße", "STRASSE"),
        ("oﬃce ﬂag", "office flag"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("𝐁𝐮𝐬", "bus"),
        ("－5", "-5"),
        ("bus\u200b stop\u2060", "bus stop"),
        ("Cafe\u0301", "Café"),
        ("3½", "3 1/2"),
        ("10²", "10^2"),
    ],
)
def test_one_character_in_several_forms_is_one_character(form: str, usual: str) -> None:
    assert folded(form) == folded(usual)
    assert words(form) == words(usual)
    assert normalised(form) == normalised(usual)


@given(st.integers(0), st.sampled_from("٠०০๐０𝟎༠"))
def test_a_number_is_the_same_in_every_script(number: int, zero: str) -> None:
    foreign = "".join(chr(ord(zero) + int(digit)) for digit in str(number))
    assert normalised(foreign) == words(foreign)[0] == str(number)


def test_powers_and_fractions_are_not_digits_of_the_number_before_them() -> None:
    assert normalised("10²") != normalised("102")
    assert normalised("3½") != normalised("31/2")


@given(st.text())
def test_what_is_folded_stays_so(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def test_content_leaves_function_words_out() -> None:
    assert content("It is on the left of the man") == ("left", "man")


def test_sentences_end_at_stops_not_inside_numbers() -> None:
    assert sentences("It is 7.23. Or not?") == ("It is 7.23.", "Or not?")
