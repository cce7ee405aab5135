"""Questions with images as OKVQA, InfographicVQA and plain tables give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.builders.rephrase import read_questions, word_count
from sightline.errors import UserError

LONG = "What is the name of the material that these two old vessels are made of?"


def okvqa(folder: Path, questions: list[dict[str, Any]], answers: dict[int, list[str]]) -> Path:
    """The two files of OK-VQA v1.1, in their released layout."""
    info = {"year": 2019, "version": "1.0", "description": "This is v1.0 of the OK-VQA dataset."}
    common = {"info": info, "data_type": "mscoco", "data_subtype": "val2014", "license": {}}
    path = folder / "OpenEnded_mscoco_val2014_questions.json"
    path.write_text(json.dumps({**common, "task_type": "Open-Ended", "questions": questions}))
    annotations = [
        {
            "image_id": number // 10,
            "question_id": number,
            "question_type": "one",
            "answer_type": "other",
            "confidence": 3,
            "answers": [
                {"answer_id": n, "raw_answer": f"raw {one}", "answer_confidence": "yes", "answer": one}
                for n, one in enumerate(given, 1)
            ],
        }
        for number, given in answers.items()
    ]
    beside = folder / "mscoco_val2014_annotations.json"
    beside.write_text(json.dumps({**common, "question_types": {}, "annotations": annotations}))
    return path


def asked(number: int, question: str = LONG) -> dict[str, Any]:
    return {"image_id": number // 10, "question": question, "question_id": number}


def test_okvqas_ten_answers_become_distinct_references_the_first_of_them_first(tmp_path: Path) -> None:
    given = ["truck"] * 6 + ["car"] * 2 + ["pickup truck"] * 2
    path = okvqa(tmp_path, [asked(4196455)], {4196455: given})
    (source,) = read_questions([path]).sources
    assert source.references == ("truck", "car", "pickup truck")
    assert source.question == LONG
    assert (source.id, source.labels) == ("okvqa-4196455", {"source": "okvqa"})


@pytest.mark.parametrize("place", [".", "val2014"])
def test_okvqa_images_are_found_in_the_folder_or_in_that_of_the_release(tmp_path: Path, place: str) -> None:
    path = okvqa(tmp_path, [asked(4196455)], {4196455: ["truck"]})
    image = tmp_path / "images" / place / "COCO_val2014_000000419645.jpg"
    image.parent.mkdir(parents=True)
    image.touch()
    (source,) = read_questions([path], [tmp_path / "images"]).sources
    assert Path(source.image).samefile(image)


def test_only_questions_of_more_than_ten_words_are_used_and_the_others_are_counted(tmp_path: Path) -> None:
    ten = "What is the name of the thing that we see?"
    assert (word_count(ten), word_count(f"{ten} - ?"), word_count(LONG)) == (10, 10, 15)
    path = okvqa(tmp_path, [asked(10, ten), asked(20, f"Now: {ten}"), asked(30)], {10: ["a"], 20: ["b"]})
    found = read_questions([path])
    assert [source.id for source in found.sources] == ["okvqa-20"]
    assert found.passed_over == {"the question is too short": 1, "no reference answer": 1}
    assert len(read_questions([path], min_words=10).sources) == 2


def infographics(folder: Path, records: list[Any]) -> Path:
    path = folder / "infographicsVQA_val_v1.0_withQT.json"
    whole = {"dataset_name": "infographicVQA", "dataset_version": "1.0", "dataset_split": "val"}
    path.write_text(json.dumps({**whole, "data": records}))
    return path


RECORD = {
    "questionId": 84053,
    "question": LONG,
    "image_local_name": "33490.jpeg",
    "image_url": "http://example.org/33490.jpeg",
    "ocr_output_file": "33490.json",
    "answers": ["COMMERCIAL", "Commercial", "COMMERCIAL"],
    "data_split": "val",
}


def test_infographicvqa_is_read_as_it_is_released(tmp_path: Path) -> None:
    (source,) = read_questions([infographics(tmp_path, [RECORD])], [tmp_path / "images"]).sources
    assert source.id == "infographicvqa-84053"
    assert source.references == ("COMMERCIAL", "Commercial")
    assert source.image == str(tmp_path / "images" / "33490.jpeg")


def test_questions_of_several_sets_are_combined(tmp_path: Path) -> None:
    files = [okvqa(tmp_path, [asked(10)], {10: ["a"]}), infographics(tmp_path, [RECORD])]
    assert [source.labels["source"] for source in read_questions(files).sources] == [
        "okvqa",
        "infographicvqa",
    ]


@pytest.mark.parametrize("form", ["jsonl", "json", "csv"])
def test_any_table_with_image_question_and_answers_is_accepted(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"mine.{form}"
    rows = [
        {"image": "a.png", "question": LONG, "answers": ["copper", "steel"]},
        {"image": "b.png", "question": LONG, "answers": ["wood"]},
    ]
    if form == "csv":
        path.write_text(
            f'image,question,answers\na.png,{LONG},"[""copper"", ""steel""]"\nb.png,{LONG},wood\n'
        )
    else:
        path.write_text(json.dumps(rows) if form == "json" else "\n".join(map(json.dumps, rows)))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.png").touch()
    found = read_questions([path], [tmp_path, tmp_path / "other"]).sources
    assert [source.references for source in found] == [("copper", "steel"), ("wood",)]
    assert [Path(source.image).parent.name for source in found] == [tmp_path.name, "other"]


def told(*files: Path, annotations: Path | None = None) -> UserError:
    with pytest.raises(UserError) as error:
        read_questions(files, annotations=annotations)
    return error.value


def test_a_broken_record_is_named_with_file_record_and_field(tmp_path: Path) -> None:
    path = okvqa(tmp_path, [asked(10), {"question_id": 20, "image_id": "x", "question": LONG}], {10: ["a"]})
    assert (told(path).file, told(path).record, told(path).field) == (path, 20, "image_id")
    lacking = {name: value for name, value in RECORD.items() if name != "question"}
    error = told(infographics(tmp_path, [RECORD, lacking]))
    assert (error.record, "question" in str(error)) == (84053, True)
    assert told(infographics(tmp_path, [RECORD, "x"])).record == "data 2"


@pytest.mark.parametrize("name", ["/etc/secret.png", "../../secret.png", "in/../../secret.png"])
def test_an_image_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    error = told(infographics(tmp_path, [RECORD, {**RECORD, "questionId": 2, "image_local_name": name}]))
    assert (error.record, error.field, error.found) == (2, "image_local_name", name)
    assert "is outside" in str(error)


def test_the_part_that_okvqa_names_cannot_lead_outside_the_folder(tmp_path: Path) -> None:
    path = okvqa(tmp_path, [asked(10)], {10: ["a"]})
    path.write_text(path.read_text().replace('"val2014"', '"../../secret"'))
    with pytest.raises(UserError, match="field data_subtype: is outside"):
        read_questions([path], annotations=tmp_path / "mscoco_val2014_annotations.json")


def test_the_folder_in_which_an_image_was_found_is_the_one_that_it_may_not_leave(tmp_path: Path) -> None:
    (tmp_path / "two" / "images").mkdir(parents=True)
    (tmp_path / "two" / "images" / "33490.jpeg").touch()
    folders = [tmp_path / "one", tmp_path / "two"]
    (source,) = read_questions([infographics(tmp_path, [RECORD])], folders).sources
    assert source.root == str(tmp_path / "two")


def test_a_duplicate_id_is_refused(tmp_path: Path) -> None:
    assert told(infographics(tmp_path, [RECORD, RECORD])).record == "infographicvqa-84053"


def test_missing_answers_are_reported_with_the_expected_file(tmp_path: Path) -> None:
    path = okvqa(tmp_path, [asked(10)], {10: ["a"]})
    beside = tmp_path / "mscoco_val2014_annotations.json"
    assert "no question is left" in str(told(infographics(tmp_path, [{**RECORD, "answers": []}])))
    assert told(beside).expected is not None
    assert "--annotations" in str(told(beside))
    assert "field annotations" in str(told(path, annotations=path))
    beside.unlink()
    assert str(beside) in str(told(path))
    assert "--annotations" in str(told(path))


@pytest.mark.parametrize("content", ["", "{", "[1]", "not JSON, not a table", '{"data": 3}', "\x89PNG\x00"])
def test_a_file_without_questions_is_a_user_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content.encode("latin-1"))
    assert told(path).file == path


def test_an_error_without_questions_lists_the_skipped_ones(tmp_path: Path) -> None:
    short = {**RECORD, "question": "How many?"}
    assert "the question is too short: 1" in str(told(infographics(tmp_path, [short])))
    assert "it holds none" in str(told(infographics(tmp_path, [])))
