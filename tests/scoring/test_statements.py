"""What the statements of an answer come to."""

from __future__ import annotations

from sightline.scoring.text import OPEN, settle, statements, without_lead_in


def test_what_is_put_aside_is_not_stated() -> None:
    assert statements("It is arriving rather than leaving.") == ("It is arriving .",)


def said(answer: str, about: frozenset[str] = frozenset()) -> str | None:
    """Settled by a reader that knows the words 'up', 'down' and 'unclear'."""

    def read(statement: str) -> str | None:
        lower = statement.lower()
        return next((word for word in ("up", "down") if word in lower), OPEN if "unclear" in lower else None)

    return settle(answer, read, about)


def test_statements_that_agree_settle_an_answer() -> None:
    assert said("Up. It is windy. My hand is moving up.") == "up"


def test_statements_that_contradict_each_other_settle_nothing() -> None:
    assert said("It is going up. It is going down.") is None


def test_a_concluding_statement_decides() -> None:
    assert said("It was going down. So it is going up now.") == "up"
    assert said("It was going down. Up.") == "up"


def test_an_announced_answer_decides_wherever_it_stands() -> None:
    assert said("It went down. The answer is up. It will go down again.") == "up"


def test_the_statement_about_what_was_asked_decides() -> None:
    assert said("The man is going up. The cabin is going down.", frozenset({"cabin"})) == "down"


def test_a_doubt_gives_way_to_a_later_answer_only() -> None:
    assert said("That is unclear. The cabin is going up.") == "up"
    assert said("The cabin is going up. That is unclear.") is None


def test_a_clause_that_leads_to_the_answer_is_no_part_of_it() -> None:
    for lead in ("Based on the context, ", "So: ", "Given the image, therefore, ", "The final answer: "):
        assert without_lead_in(lead + "eight cubes.") == "eight cubes."
    for answer in ("On the left, I think.", "Eight cubes.", "In the car", "So,"):
        assert without_lead_in(answer) == answer
