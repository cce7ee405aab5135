"""Images in words: the paper's prompts, word for word, and no image left in any turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.images import BadImage
from sightline.models.ocr import AUGMENTATIONS, Augmented, ImageText, Word, text_of
from sightline.types import Augmentation, ImageRef, Message, Text, user

IMAGE = ImageRef("data/images/a.jpg", "data")

READ = [
    ("Bedroom", "Hip Bedroom"),
    ("From $99 / month", "From $109 / month"),
    ("Includes 5 items", "Includes 5 items"),
    ("Living Room", "Hip Living Room."),
    ("$59 / month", "$79 / month"),
    ("Includes 4 items", "Includes 4 items"),
]
"""What the paper's reader found in the image of Figures 17 to 19."""

WORDS = [
    Word(text, (x, 30 * number, x + 9 * len(text), 30 * number + 20), 1.0)
    for number, line in enumerate(READ)
    for x, text in zip((0, 400), line, strict=True)
]

HIRING = "Provide the cost of hiring the machine type depicted in the image for nine months."


def told(how: Augmentation, *messages: Message, caption: str = "") -> list[str]:
    """The text of each message, of which nothing else is left."""
    augmented = Augmented(how, {IMAGE.path: ImageText(text_of(WORDS, how), caption)})
    texts = []
    for message in augmented.messages(messages):
        (part,) = message.parts
        assert isinstance(part, Text)
        texts.append(part.text)
    return texts


@pytest.mark.parametrize(
    ("how", "page", "instruction"),
    [
        ("ocr", "E.1. GPT-4 w/ OCR", "Provide the price of the upholstered dining set."),
        ("layout", "E.2. GPT-4 w/ Layout-aware OCR", HIRING),
        ("layout+caption", "E.3. GPT-4 w/ Layout-aware OCR + Caption", HIRING),
    ],
)
def test_a_turn_is_the_prompt_that_the_paper_prints(
    shared: Path, how: Augmentation, page: str, instruction: str
) -> None:
    paper = " ".join((shared / "papers" / "contextual.txt").read_text().split())
    printed = paper[paper.index(page) :]
    printed = printed[printed.index("You are OCR") :]
    printed = printed[: printed.index("Answer:") + len("Answer:")]
    caption = printed.rpartition("Image Caption: ")[2].removesuffix(" Answer:")
    (prompt,) = told(how, user(IMAGE, instruction), caption=caption)
    assert " ".join(prompt.split()) == printed
    assert f"\nInstruction : {instruction}\nOCR T" in prompt
    assert prompt.endswith("\nAnswer:")


@pytest.mark.parametrize("how", AUGMENTATIONS)
def test_examples_become_text_too_and_only_the_first_turn_opens(how: Augmentation) -> None:
    first, answer, second, last = told(
        how,
        user(IMAGE, "One?"),
        Message("assistant", (Text("1"),)),
        user(IMAGE, "Two?"),
        user(IMAGE, "Three?"),
    )
    assert answer == "1"
    assert first.startswith("You are OCR")
    assert "Answer only.\nInstruction : One?\n" in first
    assert second.startswith("Instruction : Two?\n")
    assert last.startswith("NOW YOUR TURN:\nInstruction : Three?\n")
    assert "NOW YOUR TURN" not in first + second
    assert all(text.endswith("\nAnswer:") for text in (first, second, last))


def test_several_images_of_a_turn_are_told_under_the_numbers_by_which_prompts_name_them() -> None:
    other = ImageRef("data/images/b.jpg")
    told = Augmented("layout+caption", {IMAGE.path: ImageText("A", "a"), other.path: ImageText("B", "b")})
    (message,) = told.messages((user("Look at <Picture 2>.", other, IMAGE),))
    (part,) = message.parts
    assert isinstance(part, Text)
    assert part.text.endswith(
        "\nInstruction : Look at <Picture 2>.\nOCR Text:\nPicture 1:\nB\nPicture 2:\nA\n"
        "Image Caption: Picture 1:\nb\nPicture 2:\na\nAnswer:"
    )


def test_turns_without_a_image_stay_as_they_are() -> None:
    messages = (Message("system", (Text("Be brief."),)), user("No image, {text}."))
    assert Augmented("ocr", {}).messages(messages) == messages
    system, prompt = Augmented("ocr", {IMAGE.path: ImageText("STOP")}).messages(
        (messages[0], user(IMAGE, "What?"))
    )
    assert system == messages[0]
    assert prompt.role == "user"


@given(st.text(), st.text(), st.text())
def test_whatever_is_said_or_written_stands_in_the_prompt_as_it_is(
    instruction: str, text: str, caption: str
) -> None:
    images: dict[str, ImageText | BadImage] = {IMAGE.path: ImageText(text, caption)}
    (message,) = Augmented("layout+caption", images).messages((user(IMAGE, instruction),))
    (part,) = message.parts
    assert isinstance(part, Text)
    filled = f"Instruction : {instruction.strip()}\nOCR Text:\n{text}\nImage Caption: {caption}\nAnswer:"
    assert part.text.endswith(filled)


def test_a_image_that_cannot_be_told_is_not_asked_about() -> None:
    broken = Augmented("ocr", {IMAGE.path: BadImage("a.jpg: not an image")})
    with pytest.raises(BadImage, match="not an image"):
        broken.messages((user(IMAGE, "What?"),))
