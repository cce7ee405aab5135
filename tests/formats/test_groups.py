"""The groups file: what is written is read again, and a broken line is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.groups import GroupLine, by_group, is_below, read_groups, write_groups

WORDS = st.text(st.characters(codec="utf-8"), max_size=12)
TEXTS = st.lists(WORDS, max_size=3).map(tuple)
NAMED = WORDS.filter(bool)
OPTIONS = st.lists(
    # A text that is one letter may be the letter of another option, which is refused.
    WORDS.filter(lambda word: len(word.strip()) != 1),
    max_size=3,
    unique_by=lambda word: word.strip().casefold(),
).map(tuple)


def _line(options: tuple[str, ...], references: tuple[str, ...], **fields: Any) -> GroupLine:
    """A line whose references are options, if it has options."""
    return GroupLine(**fields, options=options, references=options[:1] if options else references)


LINES = st.lists(
    st.builds(
        _line,
        group=NAMED,
        variant=NAMED,
        images=st.lists(WORDS.filter(is_below), max_size=3).map(tuple),
        prompt=NAMED,
        question=WORDS,
        references=TEXTS,
        options=OPTIONS,
        labels=st.dictionaries(WORDS, WORDS | TEXTS, max_size=3),
        cluster=WORDS,
        facts=st.dictionaries(WORDS, st.integers(-9, 9) | st.lists(st.floats(0, 1), max_size=4), max_size=3),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda line: (line.group, line.variant),
)


@settings(max_examples=30, deadline=None)
@given(LINES)
def test_whatever_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, lines: list[GroupLine]
) -> None:
    path = tmp_path_factory.mktemp("groups") / "groups.jsonl"
    write_groups(lines, path)
    assert read_groups(path) == lines
    content = path.read_bytes()
    write_groups(read_groups(path), path)
    assert path.read_bytes() == content
    assert len(content.splitlines()) == len(lines)


@given(LINES)
def test_groups_hold_all_lines_in_their_order_with_the_first_cluster(lines: list[GroupLine]) -> None:
    groups = by_group(lines)
    assert list(groups) == list(dict.fromkeys(line.group for line in lines))
    for name, held in groups.items():
        own = [line for line in lines if line.group == name]
        cluster = next((line.cluster for line in own if line.cluster), "")
        assert held == [replace(line, cluster=cluster) for line in own]


def test_a_line_of_anyones_needs_only_a_group_a_variant_and_something_to_send(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(
        '{"group": "a", "variant": "v", "prompt": "What?"}\n\n'
        '{"variant": "w", "group": "a", "images": ["a.png"], "facts": {"of": "theirs"}}\n'
    )
    assert read_groups(path) == [
        GroupLine("a", "v", (), "What?"),
        GroupLine("a", "w", ("a.png",), facts={"of": "theirs"}),
    ]


@pytest.mark.parametrize(
    ("field", "nearest"), [("promt", "prompt"), ("refrences", "references"), ("Group", "group")]
)
def test_an_unknown_field_is_an_error_with_its_line_and_the_nearest_field(
    tmp_path: Path, field: str, nearest: str
) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(GOOD + GOOD.replace('"v"', f'"w", "{field}": "x"'))
    with pytest.raises(UserError) as error:
        read_groups(path)
    assert f"g.jsonl, record line 2, field {field}: is an unknown field" in str(error.value)
    assert f"did you mean '{nearest}'?" in str(error.value)


def test_what_says_nothing_is_not_written(tmp_path: Path) -> None:
    write_groups([GroupLine("a", "v", (), "What?")], tmp_path / "g.jsonl")
    assert json.loads((tmp_path / "g.jsonl").read_text()) == {"group": "a", "variant": "v", "prompt": "What?"}


GOOD = '{"group": "a", "variant": "v", "prompt": "What?"}\n'
WRONG = {
    "no group": ('{"variant": "w", "prompt": "x"}', "line 2", "missing required field `group`"),
    "an empty group": ('{"group": "", "variant": "w", "prompt": "x"}', "field group", "is empty"),
    "no variant": ('{"group": "a", "prompt": "x"}', "line 2", "missing required field `variant`"),
    "an empty variant": ('{"group": "a", "variant": "", "prompt": "x"}', "field variant", "is empty"),
    "nothing to send": ('{"group": "a", "variant": "w"}', "field prompt", "a prompt, images, or both"),
    "a variant twice": (GOOD, "field variant", "group 'a' has variant 'v' on line 1 already"),
    "one image as text": (
        '{"group": "a", "variant": "w", "images": "a.png"}', "field images", "Expected `array`, got `str`"),
    "an image as a number": (
        '{"group": "a", "variant": "w", "images": ["a", 3]}', "field images[1]", "Expected `str`, got `int`"),
    "an absolute image": (
        '{"group": "a", "variant": "w", "images": ["a.png", "/data/b.png"]}', "field images[1]",
        "is outside the folder of the groups file (found '/data/b.png'); expected a path inside that folder"),
    "an image that leads outside": (
        '{"group": "a", "variant": "w", "images": ["x/../../b.png"]}', "field images[0]", "is outside"),
    "the folder as an image": (
        '{"group": "a", "variant": "w", "images": [""]}', "field images[0]", "is outside"),
    "a label as a number": (
        '{"group": "a", "variant": "w", "prompt": "x", "labels": {"size": 3}}', "field labels", "got `int`"),
    "a number for the group": ('{"group": 1, "variant": "w", "prompt": "x"}', "field group", "got `int`"),
    "cut off": ('{"group": "a", "vari', "line 2", "is not valid JSON"),
    "a list": ('["a", "v"]', "line 2", "Expected `object`, got `array`"),
    "not text": ('{"group": "\udcff"}', "line 2", "is not UTF-8 text"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_broken_line_is_named_with_file_line_and_field(tmp_path: Path, case: str) -> None:
    line, place, message = WRONG[case]
    path = tmp_path / "g.jsonl"
    path.write_bytes((GOOD + line).encode(errors="surrogateescape"))
    with pytest.raises(UserError) as caught:
        read_groups(path)
    text = str(caught.value)
    assert text.startswith(f"{path}, record line 2")
    assert place in text
    assert message in text


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "g.jsonl").write_text(content)
    with pytest.raises(UserError, match="empty"):
        read_groups(tmp_path / "g.jsonl")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(GOOD)

    def breaking() -> object:
        yield GroupLine("b", "v", (), "x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_groups(breaking(), path)  # type: ignore[arg-type]
    assert path.read_text() == GOOD
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(EnvironmentFailedError):
        write_groups([], tmp_path / "no" / "g.jsonl")


@pytest.mark.parametrize(
    ("options", "references", "field"),
    [
        (["a", "b"], ["c"], "references"),
        (["a", "b"], ["C"], "references"),
        (["B. x", "A. y"], ["B"], "references"),
        (["a", "a "], ["a"], "options"),
    ],
)
def test_references_name_options_and_no_option_stands_twice(
    tmp_path: Path, options: list[str], references: list[str], field: str
) -> None:
    line = {"group": "g", "variant": "v", "prompt": "?", "options": options, "references": references}
    (tmp_path / "groups.jsonl").write_text(json.dumps(line))
    with pytest.raises(UserError, match=f"line 1, field {field}"):
        read_groups(tmp_path / "groups.jsonl")


@pytest.mark.parametrize("reference", ["B", "blue", "Blue "])
def test_a_reference_is_a_letter_or_the_text_of_an_option(tmp_path: Path, reference: str) -> None:
    line = {
        "group": "g",
        "variant": "v",
        "prompt": "?",
        "options": ["red", "blue"],
        "references": [reference],
    }
    (tmp_path / "groups.jsonl").write_text(json.dumps({**line, "references": [reference]}))
    assert read_groups(tmp_path / "groups.jsonl")[0].references == (reference,)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('{"group": "g", "variant": "a", "prompt": "x", "prompt": "y"}', "prompt"),
        (r'{"group": "g", "variant": "a", "prompt": "x", "\u0070rompt": "y"}', "prompt"),
        ('{"group": "g", "variant": "a", "prompt": "x", "labels": {"k": "1", "k": "2"}}', "k"),
    ],
)
def test_a_key_that_occurs_twice_in_an_object_is_refused(tmp_path: Path, line: str, name: str) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text('{"group": "g", "variant": "0", "prompt": "x"}\n' + line)
    with pytest.raises(UserError, match=f"line 2, field {name}: occurs twice"):
        list(read_groups(path))


def test_what_looks_like_a_key_in_a_text_is_none(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    prompt = json.dumps('say {"prompt": 1, "prompt": 2}, "a": "a":')
    path.write_text(f'{{"group": "g", "variant": "a", "prompt": {prompt}, "options": ["prompt", ":"]}}')
    list(read_groups(path))
