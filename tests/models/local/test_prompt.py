"""From conversations to prompts: by a chat template, or in the form that the architecture was made for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sightline.models.local.encode import UnsupportedRequestError, prompt_of
from sightline.types import ImageFile, ImageRef, Message, Request, Text, user

FILE = ImageFile("a.png", "0" * 64, "PNG", 4, 4, (1, 1))
IMAGE = ImageRef("a.png")


def _request(*messages: Message) -> Request:
    return Request("key", messages, {}, {"a.png": FILE})


@pytest.mark.parametrize(
    ("kind", "text", "lead"),
    [
        ("llava", "USER: <image>\nWhat is it? ASSISTANT:", " "),
        ("blip-2", "Question: What is it? Answer:", " "),
        ("instructblip", "What is it?", " "),
        ("paligemma", "<image>What is it?", ""),
        ("idefics3", "User:<image>What is it?<end_of_utterance>\nAssistant:", " "),
        ("unheard-of", "<image>What is it?", " "),
    ],
)
def test_the_plain_form_of_each_architecture(kind: str, text: str, lead: str) -> None:
    processor = SimpleNamespace(chat_template=None, image_token="<image>")
    prompt = prompt_of(_request(user(IMAGE, "What is it?")), processor, kind)
    assert (prompt.text, prompt.lead, prompt.images) == (text, lead, (FILE,))


def test_images_and_texts_keep_their_order_and_a_system_message_comes_first() -> None:
    processor = SimpleNamespace(chat_template=None, image_token="<image>")
    system = Message("system", (Text("Be {brief}."),))
    prompt = prompt_of(_request(system, user("First", IMAGE, "then", IMAGE)), processor, "llava")
    assert prompt.text == "USER: Be {brief}.\nFirst<image>\nthen<image>\n ASSISTANT:"
    assert prompt.images == (FILE, FILE)


def test_without_a_template_there_is_no_conversation() -> None:
    processor = SimpleNamespace(chat_template=None, image_token="<image>")
    turns = (user("a"), Message("assistant", (Text("b"),)), user("c"))
    with pytest.raises(UnsupportedRequestError, match=r"no chat template.*one turn"):
        prompt_of(_request(*turns), processor, "llava")
    with pytest.raises(UnsupportedRequestError, match="template=chat"):
        prompt_of(_request(user("a")), processor, "llava", "chat")


class Chatting:
    """A processor whose template says who speaks; one without users is refused."""

    chat_template = "{{ messages }}"
    image_token = "<image>"

    def apply_chat_template(self, turns: list[dict[str, Any]], **options: Any) -> str:
        assert options == {"add_generation_prompt": True, "tokenize": False}
        if turns[0]["role"] == "system":
            raise ValueError("System role not supported")
        said = (part.get("text", "<image>") for turn in turns for part in turn["content"])
        return "|".join(said) + "\n"


def test_a_template_is_used_where_there_is_one_unless_the_plain_form_is_asked_for() -> None:
    request = _request(user(IMAGE, "What?"), Message("assistant", (Text("b"),)), user("Why?"))
    prompt = prompt_of(request, Chatting(), "llava")
    assert (prompt.text, prompt.lead) == ("<image>|What?|b|Why?\n", "")
    plain = prompt_of(_request(user(IMAGE, "What?")), Chatting(), "llava", "plain")
    assert plain.text == "USER: <image>\nWhat? ASSISTANT:"
    with pytest.raises(UnsupportedRequestError, match="refuses the conversation: System role not supported"):
        prompt_of(_request(Message("system", (Text("s"),)), user("a")), Chatting(), "llava")
