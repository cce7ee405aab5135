"""Images and what is known of them, from folders, tables and lists of places; what is wrong is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.builders.sources import SourceItem, decode_place_name, folder_sources, ids_of, image_sources
from sightline.errors import UserError


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


def summary(sources: list[SourceItem]) -> list[tuple[str, tuple[str, ...]]]:
    return [(source.id, source.references) for source in sources]


# --- folders


def test_a_class_folder_is_the_reference(tmp_path: Path) -> None:
    touch(tmp_path, "living_room/b.jpg", "living_room/a.jpg", "inside_bus/c.JPEG", "caf%C3%A9/d.png")
    sources = image_sources(tmp_path)
    assert summary(sources) == [
        ("caf_C3_A9-d-6eb2f54e", ("café",)),
        ("inside_bus-c", ("inside bus",)),
        ("living_room-a", ("living room",)),
        ("living_room-b", ("living room",)),
    ]
    assert [source.labels for source in sources] == [{"class": source.references[0]} for source in sources]
    assert sources[1].image == str(tmp_path / "inside_bus" / "c.JPEG")


def test_the_folder_of_an_image_is_its_class_at_any_depth(tmp_path: Path) -> None:
    touch(tmp_path, "Images/bar/a.jpg", "Images/bedroom/a.jpg")
    assert summary(folder_sources(tmp_path)) == [
        ("Images-bar-a", ("bar",)),
        ("Images-bedroom-a", ("bedroom",)),
    ]


def test_images_of_one_folder_have_no_reference(tmp_path: Path) -> None:
    touch(tmp_path / "flat", "a.jpg", "b.png")
    touch(tmp_path / "one", "photos/a.jpg", "photos/b.png")
    assert summary(folder_sources(tmp_path / "flat")) == [("a", ()), ("b", ())]
    assert summary(folder_sources(tmp_path / "one")) == [("photos-a", ()), ("photos-b", ())]


def test_hidden_files_and_other_files_are_ignored(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg", ".b.jpg", ".thumbnails/c.jpg", "notes.txt", "no-ending")
    assert summary(folder_sources(tmp_path)) == [("a", ())]


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="contains no image"):
        image_sources(touch(tmp_path, "notes.txt"))


@pytest.mark.parametrize("word", ["images", "labels"])
def test_options_of_tables_are_refused_for_a_folder(tmp_path: Path, word: str) -> None:
    with pytest.raises(UserError, match="needs a table"):
        image_sources(touch(tmp_path, "a.jpg"), **{word: tmp_path})


NAMES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=40),
    min_size=1,
    unique=True,
)


@given(NAMES)
def test_ids_are_unique_and_safe_as_file_names_whatever_the_paths_are(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    table = tmp_path_factory.mktemp("ids") / "t.json"
    table.write_text(json.dumps([{"image": f"{name}/x.jpg"} for name in names if ".." not in name] or [{}]))
    try:
        ids = [source.id for source in image_sources(table)]
    except UserError:
        return
    # File systems of Windows and macOS take names that differ in case alone for one.
    assert len({name.casefold() for name in ids}) == len(ids)
    for name in ids:
        assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name)
        assert len(name) < 200


@given(st.lists(st.sampled_from(["x", "X", "x-1", "x-2", "x-1-1", "x.jpg"]), max_size=9))
def test_ids_of_duplicate_names_do_not_equal_other_ids(names: list[str]) -> None:
    assert len({name.casefold() for name in ids_of(names)}) == len(names)


def test_a_numbered_id_does_not_equal_an_existing_name() -> None:
    assert len(set(ids_of(["x", "x", "x-1"]))) == 3


def test_a_long_path_gives_an_id_that_fits_into_a_file_name(tmp_path: Path) -> None:
    table = tmp_path / "t.jsonl"
    table.write_text("".join(json.dumps({"image": f"{'long' * 60}{n}.jpg"}) + "\n" for n in range(2)))
    one, two = (source.id for source in image_sources(table))
    assert one != two
    assert max(len(one), len(two)) < 150


# --- tables


RECORDS = {
    "t.csv": "image,question,answer\na.jpg,What?,cat\nb.jpg,,\n",
    "t.tsv": "image\tquestion\tanswer\na.jpg\tWhat?\tcat\nb.jpg\t\t\n",
    "t.jsonl": '{"image": "a.jpg", "question": "What?", "answers": ["cat"]}\n{"image": "b.jpg"}\n',
    "t.json": '[{"image": "a.jpg", "question": "What?", "reference": "cat"}, {"image": "b.jpg"}]',
    "nan.jsonl": '{"image": "a.jpg", "question": "What?", "answer": "cat"}\n'
    '{"image": "b.jpg", "question": NaN, "answer": NaN}\n',
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_table_gives_images_questions_and_answers(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(RECORDS[name])
    root = tmp_path / "photos"
    assert image_sources(tmp_path / name, root) == [
        SourceItem("a", str(root / "a.jpg"), ("cat",), "What?", root=str(root)),
        SourceItem("b", str(root / "b.jpg"), root=str(root)),
    ]


def test_a_single_record_is_a_table_too(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"image": "a.jpg", "question": "What?"}\n')
    (source,) = image_sources(tmp_path / "t.jsonl")
    assert (source.id, source.image, source.question) == ("a", str(tmp_path / "a.jpg"), "What?")


@pytest.mark.parametrize(
    ("cell", "references"),
    [
        ('"[""cat"", ""kitten""]"', ("cat", "kitten")),
        ('"[""cat"", ""cat""]"', ("cat",)),
        ("[sic]", ("[sic]",)),
        ('"[1, 2]"', ("1", "2")),
        ("[]", ()),
        (" cat ", ("cat",)),
    ],
)
def test_a_cell_may_hold_a_json_list(tmp_path: Path, cell: str, references: tuple[str, ...]) -> None:
    (tmp_path / "t.csv").write_text(f"image,answers\na.jpg,{cell}\n")
    (source,) = image_sources(tmp_path / "t.csv")
    assert source.references == references


def test_records_about_one_image_are_told_apart_by_a_number(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("image,question\na.jpg,One?\nb.jpg,Two?\na.jpg,Three?\n")
    assert [source.id for source in image_sources(tmp_path / "t.csv")] == ["a-1", "b", "a-2"]


def test_ids_of_the_table_are_kept(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,image\n17,a.jpg\nq/2,a.jpg\n")
    one, two = (source.id for source in image_sources(tmp_path / "t.csv"))
    assert one == "17"
    assert re.fullmatch("q-2", two)


WRONG = {
    "no image": ('{"question": "x", "n": 1}\n', "record line 1, field image: is missing"),
    "an empty one": ('{"image": "a.jpg"}\n{"image": ""}\n', "record line 2, field image: names no image"),
    "a number for text": ('{"image": ["a.jpg"]}\n', "record line 1, field image: is not a text"),
    "is outside": ('{"image": "../a.jpg"}\n', "record line 1, field image: is outside"),
    "absolute": ('{"image": "/etc/a.jpg"}\n', "record line 1, field image: is outside"),
    "out by a detour": ('{"image": "x/../../a.jpg"}\n', "field image: is outside"),
    "a null byte": ('{"image": "a\\u0000.jpg"}\n', "field image: names no image"),
    "answers as records": ('{"image": "a.jpg", "answers": [{"a": "x"}]}\n', "field answers: is not a text"),
    "a truth value": ('{"image": "a.jpg", "answer": true}\n', "field answer: is not a text"),
    "id twice": ('{"image": "a", "id": 1}\n{"image": "b", "id": "1"}\n', "2, field id: occurs in line 1"),
    "an id missing": ('{"image": "a", "id": 1}\n{"image": "b"}\n', "record line 2, field id: is missing"),
    "cut off": ('{"image": "a.jpg"}\n{"image": "b', "record line 2: is not valid JSON"),
    "no record": ('[{"image": "a.jpg"}, 3]', "record entry 2: is not a record"),
    "empty": ("", "the file is empty"),
    "a short line": ("image,answer\na.jpg\n", "record line 2: has more or fewer cells"),
    "a column twice": ("image,answer,answer\na.jpg,x,y\n", "field answer: occurs twice in the header"),
    "a csv of something else": ("file,answer\na.jpg,x\n", "field image: is missing"),
    "an unknown field": ('{"image": "a.jpg", "refrence": "x"}\n', "did you mean 'reference'?"),
    "an unknown column": ("image,quesion\na.jpg,x\n", "field quesion: is an unknown field"),
    "not text": ("\x80\x81image\n", "is neither a workbook nor UTF-8 text"),
    "places of nowhere": ('{"a": "bar"}', "its image is missing"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_record_is_named_with_file_line_and_field(tmp_path: Path, case: str) -> None:
    text, message = WRONG[case]
    path = tmp_path / "t.data"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError) as caught:
        image_sources(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_every_kind_of_sources_names_the_folder_that_images_may_not_leave(landmarks: Path) -> None:
    index, names = landmarks / "index", landmarks / "names.csv"
    (landmarks / "t.csv").write_text("image\n0/0/1/001aa.jpg\n")
    (landmarks / "places.json").write_text('{"001aa": "bar"}')
    for sources in (
        image_sources(index),
        image_sources(landmarks / "t.csv", index),
        image_sources(landmarks / "train.csv", index, names),
        image_sources(landmarks / "places.json", index),
    ):
        assert {source.root for source in sources} == {str(index)}


# --- Google Landmarks


@pytest.fixture
def landmarks(tmp_path: Path) -> Path:
    """A csv of the release's form, its names, and two of its three images in the release's folders."""
    touch(tmp_path / "index", "0/0/1/001aa.jpg", "0/0/2/002bb.jpg")
    (tmp_path / "train.csv").write_text(
        "id,url,landmark_id\n001aa,http://x/1.jpg,7\n002bb,http://x/2.jpg,8\n003cc,http://x/3.jpg,7\n"
    )
    (tmp_path / "names.csv").write_text(
        "landmark_id,category\n"
        "7,http://commons.wikimedia.org/wiki/Category:Vl%C4%8D%C3%AD_d%C5%AFl\n"
        "8,http://commons.wikimedia.org/wiki/Category:Stadtkirche_(Karlsruhe)\n"
    )
    return tmp_path


def test_landmarks_are_found_below_the_folder_and_named(landmarks: Path) -> None:
    sources = image_sources(landmarks / "train.csv", landmarks / "index", landmarks / "names.csv")
    assert summary(sources) == [
        ("001aa", ("Vlčí důl",)),
        ("002bb", ("Stadtkirche (Karlsruhe)",)),
        ("003cc", ("Vlčí důl",)),
    ]
    assert sources[0].image == str(landmarks / "index" / "0/0/1/001aa.jpg")
    assert not Path(sources[2].image).exists()


def test_only_existing_images_of_a_release_become_sources(landmarks: Path) -> None:
    with (landmarks / "train.csv").open("a") as file:
        file.writelines(f"{number:05},http://x,7\n" for number in range(100))
    sources = image_sources(landmarks / "train.csv", landmarks / "index", landmarks / "names.csv")
    assert [source.id for source in sources] == ["001aa", "002bb"]


def test_a_csv_that_names_landmarks_itself_needs_no_labels(landmarks: Path) -> None:
    (landmarks / "mine.csv").write_text("id,landmark\n001aa,Tab%C3%A1n\n")
    assert summary(image_sources(landmarks / "mine.csv", landmarks / "index")) == [("001aa", ("Tabán",))]


def test_a_wrong_landmark_is_named(landmarks: Path) -> None:
    train, index, names = landmarks / "train.csv", landmarks / "index", landmarks / "names.csv"
    with pytest.raises(UserError, match=r"field landmark_id: names landmarks by number.*--labels"):
        image_sources(train, index)
    with pytest.raises(UserError, match=r"train.csv: its image is missing"):
        image_sources(train, touch(landmarks / "empty", "x.txt"), names)
    names.write_text("landmark_id,category\n8,x\n")
    with pytest.raises(UserError, match=r"line 2, field landmark_id: has no name \(found '7'\)"):
        image_sources(train, index, names)
    names.write_text("landmark,category\n8,x\n")
    with pytest.raises(UserError, match=r"names.csv, field landmark_id: is missing"):
        image_sources(train, index, names)
    all_names = landmarks / "all.csv"
    all_names.write_text("landmark_id,category\n7,x\n8,y\n")
    train.write_text("id,url,landmark_id\n001aa,http://x,7\n002bb,htt\n")
    with pytest.raises(UserError, match="line 3: has a wrong number of cells"):
        image_sources(train, index, all_names)
    train.write_text("id,landmark\n001aa,x\n../../secret,y\n")
    with pytest.raises(UserError, match="record line 3: is not a file name"):
        image_sources(train, index)


def test_two_images_with_one_name_are_refused(landmarks: Path) -> None:
    touch(landmarks / "index", "9/001aa.jpg")
    with pytest.raises(UserError, match="several images have the name '001aa'"):
        image_sources(landmarks / "train.csv", landmarks / "index", landmarks / "names.csv")


def test_labels_are_accepted_only_with_landmarks(tmp_path: Path) -> None:
    for name, text in (("t.csv", "image\na.jpg\n"), ("t.jsonl", '{"image": "a.jpg"}\n')):
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError, match="--labels needs a Google Landmarks CSV"):
            image_sources(tmp_path / name, None, tmp_path / "names.csv")


# --- the authors' own label files


def author_labels(shared: Path, name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((shared / "data/mmr3/author_labels" / name).read_text())
    return found


def test_the_authors_landmark_names_are_decoded(shared: Path, tmp_path: Path) -> None:
    named = author_labels(shared, "landmarks_labels.json")
    encoded = [name for name in named.values() if re.search("%[0-9A-F]{2}", name)]
    assert (len(named), len(encoded)) == (612, 125)
    touch(tmp_path, *(f"{stem}.jpg" for stem in named))
    sources = image_sources(shared / "data/mmr3/author_labels/landmarks_labels.json", tmp_path)
    assert [source.id for source in sources] == list(named)
    found = {source.id: source.references[0] for source in sources}
    assert not any(re.search("[%_]", name) for name in found.values())
    assert {stem: name for stem, name in named.items() if found[stem] != name}.keys() == {
        stem for stem, name in named.items() if "%" in name or "_" in name or "  " in name
    }
    assert found["3817460"] == "Vlčí důl"


def test_the_authors_indoor_names_are_decoded(shared: Path, tmp_path: Path) -> None:
    named = author_labels(shared, "indoor_labels.json")
    assert (len(named), sum("_" in name for name in named.values())) == (734, 141)
    touch(tmp_path, *(f"{place}/{stem}.jpg" for stem, place in named.items()))
    sources = image_sources(shared / "data/mmr3/author_labels/indoor_labels.json", tmp_path)
    for source, (stem, place) in zip(sources, named.items(), strict=True):
        assert source.references == (place.replace("_", " "),)
        assert Path(source.image).stem == stem
        assert Path(source.image).exists()
    assert len({source.id.casefold() for source in sources}) == 734


def test_the_file_in_the_folder_of_its_class_is_preferred(tmp_path: Path) -> None:
    touch(tmp_path, "bar/1.jpg", "wine_cellar/1.jpg", "gym/2.jpg")
    (tmp_path / "l.json").write_text('{"1": "wine_cellar", "2": "gym", "3": "bar"}')
    images = [Path(source.image).relative_to(tmp_path) for source in image_sources(tmp_path / "l.json")]
    assert [str(path) for path in images] == ["wine_cellar/1.jpg", "gym/2.jpg", "3.jpg"]
    (tmp_path / "l.json").write_text('{"1": "gym"}')
    with pytest.raises(UserError, match="several images have the name '1'"):
        image_sources(tmp_path / "l.json")


def test_a_name_that_leads_outside_the_folder_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "secret.jpg", "photos/1.jpg")
    (tmp_path / "l.json").write_text('{"1": "gym", "../secret": "bar"}')
    with pytest.raises(UserError, match="is not a file name"):
        image_sources(tmp_path / "l.json", tmp_path / "photos")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("concert_hall", "concert hall"),
        ("Tab%C3%A1n", "Tabán"),
        ("http://commons.wikimedia.org/wiki/Category:Saint-Jean_(Lyon)", "Saint-Jean (Lyon)"),
        ("50%_off", "50% off"),
        ("%FF%FE", "%FF%FE"),
        (" Central  Park ", "Central Park"),
        ("100%25", "100%"),
        ("A+B", "A+B"),
    ],
)
def test_an_encoded_name_is_decoded_once(name: str, plain: str) -> None:
    assert decode_place_name(name) == plain
