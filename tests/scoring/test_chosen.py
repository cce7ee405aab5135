"""The option that a response chooses: forms in eight languages, and what must hold for every response."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sightline.scoring.chosen import read_choice
from sightline.scoring.options import extract_released

FORMS: list[tuple[tuple[str, ...], dict[str, int | None]]] = [
    (
        ("a kite", "a drum", "a lamp", "a boot"),
        {
            "B": 1,
            "b": 1,
            "(b)": 1,
            "B.": 1,
            "**B**": 1,
            "B) a drum": 1,
            "B: a drum": 1,
            "Option B": 1,
            "option b": 1,
            "Answer: B. a drum": 1,
            "The correct answer is (B) a drum.": 1,
            "The answer is **B. a drum**.": 1,
            "Final Answer: $\\boxed{B}$": 1,
            "\\boxed{\\text{B}}": 1,
            "\\boxed{\\text{B. a drum}}": 1,
            "<answer>B</answer>": 1,
            '{"answer": "B"}': 1,
            '```json\n{"answer": "B", "reason": "A is a kite"}\n```': 1,
            "I would choose B because it is round.": 1,
            "I'd go with option B.": 1,
            "I think the answer is B": 1,
            "It's B.": 1,
            "So it must be B!": 1,
            "Let's look:\nA. a kite\nB. a drum\nC. a lamp\nD. a boot\n\nIt is round. So the answer is B.": 1,
            "A. a kite\nB. a drum\nC. a lamp\nD. a boot": None,
            "A. a kite - incorrect, too dark.\nB. a drum - correct.\nC. a lamp - wrong.\nD. a boot - no.": 1,
            "- A: a kite ❌\n- B: a drum ✅\n- C: a lamp ❌\n- D: a boot ❌": 1,
            "The image shows a drum.": 1,
            "This looks like a drum, not a kite.": 1,
            "It is a drum rather than a lamp.": 1,
            "Not a kite. A drum.": 1,
            "It is not a kite; it is a drum.": 1,
            "It could be a kite or a drum.": None,
            "Either A or C.": None,
            "A and B": None,
            "A, B": None,
            "A/B": None,
            "B and C are both correct": None,
            "All of the above": None,
            "None of the options is right.": None,
            "I'm sorry, but I can't help with that.": None,
            "I cannot determine the answer from the image.": None,
            "Which option do you mean?": None,
            "The answer is": None,
            "E": None,
            "The correct answer is E.": None,
            "": None,
            "Options A and C can be ruled out. B is the best choice.": 1,
            "Options A, C and D are incorrect. The answer is B.": 1,
            "A, C and D are wrong, so B.": 1,
            "B is correct. A is wrong because it has no string.": 1,
            "Although A seems plausible, B is the correct answer.": 1,
            "While option A mentions a kite, the right answer is option B.": 1,
            "Option B is the most accurate.": 1,
            "B is right.": 1,
            "(B)": 1,
            "[B]": 1,
            "Answer:\nB": 1,
            "**Answer:**\n\nB) a drum": 1,
            "### Answer\nB": 1,
            "Initially I thought A, but the answer is B.": 1,
            "Answer: A\n\nWait, looking again, the answer is B.": 1,
            "The answer is A. Actually, no: the answer is C.": 2,
            "Answer: A\nAnswer: B": None,
            "My final answer is C, not A.": 2,
            "The answer cannot be A.": None,
            "Neither A nor B.": None,
            "It isn't C.": None,
            "Not D": None,
            "Everything except B": None,
            "I would eliminate A and D.": None,
            "Definitely not option C.": None,
            "B can be excluded.": None,
            "A is unlikely.": None,
            "The lamp is not in the picture.": None,
            "There is no drum.": None,
            "I don't think it is a drum.": None,
            "A man plays music.": None,
            "I see people.": None,
            "Vitamin C is healthy.": None,
            "See http://x.org/B for more": None,
            "a drum, I believe": 1,
            "drum": 1,
            "Drum.": 1,
            "The drum": 1,
            "A DRUM": 1,
            "a drum\n": 1,
            "“a drum”": 1,
            "Answer - B": 1,
            "Ans: B": 1,
            "Answer = B": 1,
            "answer is b)": 1,
            "Correct option: B": 1,
            "The correct choice is B: a drum": 1,
            "The best answer would be B": 1,
            "B, because A is too bright.": 1,
            "B\n\nA is a kite, which isn't shown.": 1,
            "B (a drum)": 1,
            "b. a drum": 1,
            "The object is a drum (B).": 1,
            "The object is a drum, so option B is correct.": 1,
            "B. a kite": None,
            "The answer is B. a kite": None,
        },
    ),
    (
        ("Vitamin A", "Vitamin C", "Vitamin D"),
        {
            "Vitamin C": 1,
            "The answer is Vitamin D.": 2,
            "It contains vitamin C": 1,
            "C": 2,
        },
    ),
    (
        ("Plan B", "Plan C"),
        {
            "Plan B": 0,
            "Answer: Plan C": 1,
        },
    ),
    (
        ("1", "2", "3", "4"),
        {
            "3": 2,
            "There are 3 dogs.": 2,
            "The answer is 3.": 2,
            "B. 2": 1,
            "12": None,
            "1.5": None,
        },
    ),
    (
        ("10%", "20%"),
        {
            "10%": 0,
            "It is about 20%.": 1,
        },
    ),
    (
        ("no parking", "parking"),
        {
            "no parking": 0,
            "The sign says parking is allowed": 1,
        },
    ),
    (
        ("present", "not present"),
        {
            "not present": 1,
            "It is not present.": 1,
            "The dog is present.": 0,
        },
    ),
    (
        ("a cat", "a dog", "None of the above"),
        {
            "None of the above": 2,
            "The answer is none of the above.": 2,
        },
    ),
    (
        ("Left", "Right", "Both"),
        {
            "Both": 2,
            "Left and right": None,
        },
    ),
    (
        ("Yes", "No"),
        {
            "Yes": 0,
            "no": 1,
            "No.": 1,
            "Yes, there is a cat.": 0,
            "No, there isn't.": 1,
            "No, there is no cat in the picture.": 1,
            "Yes, it is not raining.": 0,
            "The answer is Yes.": 0,
            "Answer: **No**": 1,
            "A": 0,
            "B. No": 1,
            "(A) Yes": 0,
            "yes/no": None,
            "Maybe.": None,
            "I cannot tell.": None,
            "There is no way to tell.": None,
            "No idea.": None,
            "I'm not sure.": None,
            "Looking at the picture, there are two cats on the sofa.\n\nYes": 0,
            "Based on the image, no, the light is not green.": 1,
            "So the answer is no.": 1,
            "Is there a cat? Yes, there is.": 0,
            "Yes. No, wait, no.": 1,
            "yeah": 0,
            "Nope!": 1,
            "\\boxed{Yes}": 0,
            "<answer>no</answer>": 1,
            "It's hard to say yes or no.": None,
        },
    ),
    (
        ("No", "Yes"),
        {
            "YES!": 1,
        },
    ),
    (
        ("Yes, they are the same", "No, they differ"),
        {
            "Yes, they are the same.": 0,
            "No.": 1,
        },
    ),
    (
        ("一只猫", "一只狗", "一辆车", "一棵树"),
        {
            "B": 1,
            "答案：B": 1,
            "正确答案是B。": 1,
            "答案是（B）一只狗。": 1,
            "选项B正确。": 1,
            "B选项是正确的": 1,
            "我选择B，因为图中是一只狗。": 1,
            "因此，正确答案是 **B. 一只狗**。": 1,
            "一只狗": 1,
            "图中是一只狗。": 1,
            "图片中的动物是一只狗，而不是一只猫。": 1,
            "不是A，而是B。": 1,
            "A错误，B正确。": 1,
            "排除A和C。": None,
            "A或B": None,
            "A和B都可以": None,
            "无法确定。": None,
            "A、B、C、D": None,
            "故选B。": 1,
            "所以选B": 1,
            "答案为Ｂ": 1,
            "【答案】B": 1,
            "综上所述，最合适的选项是B。": 1,
            "选项A不符合，选项C也不对，选项D无关。因此选B。": 1,
            "A. 一只猫\nB. 一只狗\nC. 一辆车\nD. 一棵树\n\n根据图片，答案是C。": 2,
            "答案不是A。": None,
        },
    ),
    (
        ("是", "否"),
        {
            "是": 0,
            "否": 1,
            "不是。": 1,
            "是的，图中有一只猫。": 0,
            "不，图中没有猫。": 1,
            "Yes": 0,
            "我不确定。": None,
            "图中没有任何文字，无法判断。": None,
        },
    ),
    (
        ("有", "没有"),
        {
            "没有": 1,
            "有，图中有三个人。": 0,
            "没有，图中没有人。": 1,
        },
    ),
    (
        ("对", "错"),
        {
            "对": 0,
        },
    ),
    (
        ("猫", "犬", "自動車", "木"),
        {
            "B": 1,
            "答えはBです。": 1,
            "正解はBです。": 1,
            "正解：B": 1,
            "Bが正解です。": 1,
            "Bです。": 1,
            "選択肢Bが最も適切です。": 1,
            "犬": 1,
            "犬です。": 1,
            "画像に写っているのは犬です。": 1,
            "AではなくBです。": 1,
            "Aは間違いです。": None,
            "AかB": None,
            "わかりません。": None,
            "したがって、正解は B. 犬 です。": 1,
            "答え：（B）": 1,
            "Aではありません。": None,
        },
    ),
    (
        ("はい", "いいえ"),
        {
            "はい": 0,
            "いいえ、違います。": 1,
            "はい、猫がいます。": 0,
            "いいえ、猫はいません。": 1,
        },
    ),
    (
        ("고양이", "개", "자동차", "나무"),
        {
            "B": 1,
            "정답: B": 1,
            "정답은 B입니다.": 1,
            "정답은 (B) 개입니다.": 1,
            "답은 B": 1,
            "B가 정답입니다.": 1,
            "자동차입니다.": 2,
            "이미지에는 자동차가 있습니다.": 2,
            "A가 아니라 B입니다.": 1,
            "A는 아닙니다.": None,
            "A 또는 B": None,
            "잘 모르겠습니다.": None,
            "따라서 정답은 **B**입니다.": 1,
            "B번": 1,
            "옵션 B가 가장 적절합니다.": 1,
        },
    ),
    (
        ("예", "아니요"),
        {
            "예": 0,
            "아니요, 없습니다.": 1,
            "네, 있습니다.": 0,
        },
    ),
    (
        ("eine Katze", "ein Hund", "ein Auto", "ein Baum"),
        {
            "Antwort: B": 1,
            "Die richtige Antwort ist B.": 1,
            "Die Antwort lautet B) ein Hund.": 1,
            "Option B ist richtig.": 1,
            "Es ist ein Hund.": 1,
            "Nicht A, sondern B.": 1,
            "A oder B": None,
            "Es ist keine Katze.": None,
            "B ist falsch.": None,
            "Ich würde B wählen.": 1,
            "Das kann ich nicht sagen.": None,
            "Auf dem Bild ist ein Hund zu sehen, keine Katze.": 1,
        },
    ),
    (
        ("Ja", "Nein"),
        {
            "Ja, da ist eine Katze.": 0,
            "Nein.": 1,
        },
    ),
    (
        ("un chat", "un chien", "une voiture", "un arbre"),
        {
            "Réponse : B": 1,
            "La bonne réponse est B.": 1,
            "La réponse correcte est la B.": 1,
            "C'est un chien.": 1,
            "Ce n'est pas un chat, c'est un chien.": 1,
            "A ou B": None,
            "Ce n'est pas B.": None,
            "Je choisis l'option B.": 1,
            "Je ne sais pas.": None,
            "L'option B est correcte, car A montre un chat.": 1,
        },
    ),
    (
        ("Oui", "Non"),
        {
            "Oui, il y a un chat.": 0,
            "Non, il n'y en a pas.": 1,
        },
    ),
    (
        ("кошка", "собака", "машина", "дерево"),
        {
            "Ответ: B": 1,
            "Правильный ответ — B.": 1,
            "Правильный ответ: B) собака": 1,
            "Это собака.": 1,
            "Это не кошка, а собака.": 1,
            "Вариант B верный.": 1,
            "A или B": None,
            "Не A.": None,
            "Ответ: Б": 1,
            "Не знаю.": None,
        },
    ),
    (
        ("Да", "Нет"),
        {
            "Да, на картинке есть кошка.": 0,
            "Нет.": 1,
            "Нет, там нет кошки.": 1,
        },
    ),
    (
        ("un gato", "un perro", "un coche", "un árbol"),
        {
            "Respuesta: B": 1,
            "La respuesta correcta es B.": 1,
            "La opción correcta es la B) un perro.": 1,
            "Es un perro.": 1,
            "No es un gato, es un perro.": 1,
            "No es un gato sino un perro.": 1,
            "A o B": None,
            "No es B.": None,
            "No lo sé.": None,
            "La B es incorrecta.": None,
            "Elijo la B.": 1,
        },
    ),
    (
        ("Sí", "No"),
        {
            "Sí, hay un gato.": 0,
            "No, no hay ninguno.": 1,
            "No lo sé.": None,
        },
    ),
]
"""Options, and responses with the position that each chooses; None for none or several."""

BY_QUESTION = [
    ("Is there a traffic light in the image?", "I don't see any traffic light in the picture.", 1),
    ("Is the bus green?", "The bus is red.", None),
    ("Is the bus green?", "The bus is green.", 0),
    ("Is the bus green?", "The bus is red, not green.", 1),
    ("Is the red car to the left of the tree?", "The red car is to the right of the tree.", None),
    ("Is the chair higher than the table?", "The table is higher than the chair.", None),
    ("Is the man wearing a hat?", "It is unclear whether the man is wearing a hat.", None),
    ("Is there a dog?", "I cannot see the dog clearly.", None),
    ("Do both panels show the same man?", "They do.", 0),
]

NEGATED = [
    ("Which device is NOT on the desk?", "C is the one that is not on the desk.", 2),
    ("Which device is NOT on the desk?", "There is a mouse on the desk.", None),
    ("Which device is on the desk?", "C is not on the desk.", None),
]
DEVICES = ("keyboard", "mouse", "monitor", "printer")

LABELS = (
    "Answer: {}",
    "The answer is {}.",
    "**Answer:** {}",
    "\\boxed{{{}}}",
    "<answer>{}</answer>",
    "答案：{}",
    "정답은 {}입니다.",
    "答えは{}です。",
    "Antwort: {}",
    "Réponse : {}",
    "Ответ: {}",
    "Respuesta: {}",
    "({})",
    "{}.",
    "Final answer: **{}**",
    '{{"answer": "{}"}}',
)
OPTION = st.text(st.characters(whitelist_categories=["Ll"], max_codepoint=0x7F), min_size=4, max_size=9)
OPTIONS = st.lists(OPTION, min_size=2, max_size=8, unique=True)


@pytest.mark.parametrize(
    ("options", "responses"), FORMS, ids=lambda value: value[0] if isinstance(value, tuple) else ""
)
def test_a_response_chooses_what_it_states(
    options: tuple[str, ...], responses: dict[str, int | None]
) -> None:
    read = {response: read_choice(response, options).position for response in responses}
    assert read == responses


@pytest.mark.parametrize(
    ("response", "position"),
    [
        ("Opción 3", 2),
        ("La respuesta correcta es la opción 3: hay 4.", 2),
        ("The answer is option 2.", 1),
        ("2番", 1),
        ("정답은 2번입니다.", 1),
        ("Le nombre juste est le numéro 2.", 1),
    ],
)
def test_a_number_that_names_an_option_is_its_label_also_where_the_texts_are_numbers(
    response: str, position: int
) -> None:
    assert read_choice(response, ("1. 2", "2. 3", "3. 4", "4. 5")).position == position


@pytest.mark.parametrize(
    ("options", "response", "position"),
    [
        (("rain", "sun", "fog"), "Antwort: С", 2),  # Cyrillic
        (("rain", "sun", "fog"), "Réponse: (В)", 1),
        (("дождь", "солнце", "туман"), "Ответ: В", None),
        (("А. дождь", "Б. солнце", "В. туман"), "Ответ: В", 2),
        (("А. дождь", "Б. солнце", "В. туман"), "Ответ: Б", 1),
    ],
)
def test_a_cyrillic_letter_is_the_label_that_it_must_be(
    options: tuple[str, ...], response: str, position: int | None
) -> None:
    assert read_choice(response, options).position == position


@pytest.mark.parametrize(("question", "response", "position"), BY_QUESTION)
def test_a_statement_of_what_is_asked_is_yes_and_its_denial_no(
    question: str, response: str, position: int | None
) -> None:
    assert read_choice(response, ("Yes", "No"), question).position == position
    mirrored = None if position is None else 1 - position
    assert read_choice(response, ("No", "Yes"), question).position == mirrored


@pytest.mark.parametrize(("question", "response", "position"), NEGATED)
def test_what_is_called_wrong_is_chosen_where_the_question_asks_for_it(
    question: str, response: str, position: int | None
) -> None:
    assert read_choice(response, DEVICES, question).position == position


@given(OPTIONS, st.data(), st.sampled_from(LABELS))
def test_a_labelled_letter_is_chosen_whatever_the_options_are(
    options: list[str], data: st.DataObject, label: str
) -> None:
    position = data.draw(st.integers(0, len(options) - 1))
    assert read_choice(label.format("ABCDEFGH"[position]), options).position == position


@given(OPTIONS, st.data(), st.sampled_from(["{}", "{}.", "“{}”", "**{}**", "Answer: {}"]))
def test_the_text_of_an_option_is_chosen_wherever_it_stands_in_the_list(
    options: list[str], data: st.DataObject, form: str
) -> None:
    position = data.draw(st.integers(0, len(options) - 1))
    turned = options[::-1]
    assert read_choice(form.format(options[position]), options).position == position
    assert read_choice(form.format(options[position]), turned).position == len(options) - 1 - position


@example("\ue401", ["0"])  # a sign that the reader uses itself
@given(st.text(), st.lists(st.text(min_size=1), min_size=1, max_size=30))
def test_any_response_to_any_options_is_read(response: str, options: list[str]) -> None:
    position = read_choice(response, options).position
    assert position is None or 0 <= position < len(options)


def test_equal_options_are_chosen_by_letter_and_not_by_text() -> None:
    options = ["a red fox", "a red fox", "an owl"]
    assert read_choice("B", options).position == 1
    assert read_choice("A red fox.", options).position is None


def test_an_option_after_the_last_letter_is_chosen_by_its_text() -> None:
    options = [f"number {place}" for place in range(30)]
    assert read_choice("number 28", options).position == 28


@pytest.mark.slow
def test_on_released_answers_it_reads_what_the_released_script_reads(shared: Path) -> None:
    read = 0
    for file in sorted((shared / "data/iibench/released").glob("*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).splitlines():
            (question,) = json.loads(line)["questions"]
            position = read_choice(question["response"], question["options"]).position
            letter = None if position is None else "ABCDEF"[position]
            assert letter == extract_released(question["response"], question["options"])
            read += 1
    assert read == 5 * 1399


NAMES = ("yes-no", "article", "other-options", "negated", "letter-forms", "equal-options")


@pytest.mark.parametrize("name", NAMES)
def test_replies_that_were_read_wrongly(shared: Path, name: str) -> None:
    folder = shared / "cases/replies-and-files"
    groups = [json.loads(line) for line in (folder / f"{name}-groups.jsonl").read_text().splitlines()]
    options = {group["group"]: group["options"] for group in groups}
    for line in (folder / f"{name}-right.jsonl").read_text().splitlines():
        right = json.loads(line)
        position = read_choice(right["response"], options[right["group"]]).position
        assert (None if position is None else chr(ord("A") + position)) == right["option"], right


@pytest.mark.parametrize(
    ("response", "options", "position"),
    [
        ("Definitely not", ("Yes", "No"), 1),
        ("no, wait, yes", ("Yes", "No"), 0),
        ("I don't know.", ("I", "II", "III"), None),
        ("I would be happy to help, but I see no image.", ("happy", "sad"), None),
        ("I'm unable to see a dog.", ("a cat", "a dog"), None),
        ("Answer: A. Sorry, I meant B.", ("a cat", "a dog"), 1),
        ("A. No. B.", ("a cat", "a dog"), 1),
        ("答案是A。不对，应该是B。", ("a cat", "a dog"), 1),
        ("B\n\nQuestion: What is it?\nAnswer: A", ("a cat", "a dog"), 1),
        ("B<|im_end|>\n<|im_start|>assistant\nA", ("a cat", "a dog"), 1),
        ("A B C D", ("a cat", "a dog", "an owl", "a fox"), None),
        ("That's right, it is on the left.", ("left", "right"), 0),
    ],
)
def test_refusals_revisions_and_turns_of_others_are_no_statements(
    response: str, options: tuple[str, ...], position: int | None
) -> None:
    assert read_choice(response, options).position == position


@pytest.mark.parametrize(
    ("response", "options", "position"),
    [
        # Inflected: the only option whose words a sentence holds in another form.
        ("einen Waschbären", ("Ein Dachs", "Ein Waschbär", "Ein Fuchs"), 1),
        ("Автобус жёлтого цвета.", ("жёлтый", "красный", "синий"), 0),
        ("Ce tableau est surréaliste.", ("Le cubisme", "L'impressionnisme", "Le surréalisme"), 2),
        ("She looks embarrassed.", ("Joy", "Embarrassment", "Anger"), 1),
        ("She does not look embarrassed.", ("Joy", "Embarrassment", "Anger"), None),
        ("The highlighted country is Nigeria.", ("Chad", "Niger", "Mali"), None),
        (
            "The tree is left of the house.",
            ("The house is left of the tree", "The tree is right of the house"),
            None,
        ),
        # Contractions
        (
            "They're teacher and student. One of them points.",
            ("They are strangers", "They are teacher and student"),
            1,
        ),
        ("No, it's a candle.", ("Yes, it is an apple.", "No, it is a candle."), 1),
        # What is called the answer outranks what led to it.
        ("I count 2 at the front and one behind. The answer is (C).", ("One", "Two", "Three", "Four"), 2),
        ("Donc A est exclu. Réponse : B", ("Le foie", "L'estomac", "Le cœur"), 1),
        # A condition that does not hold, and what is less likely
        ("If it were a cat, the answer would be A. It is a dog.", ("a cat", "a dog"), 1),
        ("Most likely: B. Less likely: A.", ("a cat", "a dog"), None),
        # Polite forms of plain options, and sides with their noun
        ("本を読んでいます。", ("料理をしている", "本を読んでいる"), 1),
        ("正しくありません。女性の方が長いです。", ("正しい", "正しくない"), 1),
        ("소비세는 이미 지났습니다.", ("지났다", "지나지 않았다"), 0),
        ("右边", ("左", "右"), 1),
        # Several that are possible
        ("可能是“人民路”或“解放路”。", ("中山路", "解放路", "人民路"), None),
        # The list of the options is no answer to 'each option'.
        ("Analicemos cada opción:\n\nA) Hierba: productor.\nB) Rana: consumidor.", ("Hierba", "Rana"), None),
        (r"$\boxed{\frac{8}{3}}$", ("2", "8/3", "4", "8"), 1),
        # Japanese suppositions are no denials.
        ("おそらく梅ではないかと思います。", ("桜", "梅", "桃"), 1),
    ],
)
def test_forms_conditions_and_suppositions(
    response: str, options: tuple[str, ...], position: int | None
) -> None:
    assert read_choice(response, options).position == position


@pytest.mark.parametrize(
    ("question", "response", "position"),
    [
        ("Does the MRI show any sign of hemorrhage?", "No evidence of hemorrhage is seen.", 1),
        ("¿Hay alguna bicicleta?", "No se ve ninguna bicicleta.", 1),
        ("¿Es el cielo azul?", "No puedo responder con seguridad.", None),
        ("Is it sarcastic?", "Likely, yes", 0),
        ("Was it taken at night?", "no no", 1),
        ("보행자 신호등은 초록불인가요?", "보행자 신호등이 빨간불이므로 '아니요'입니다.", 1),
        ("这张图片是AI生成的吗？", "我倾向于回答“否”。", 1),
        ("Is it red?", "Answer with 'yes' or 'no'.", None),
    ],
)
def test_both_sides_of_yes_and_no_are_read_alike(question: str, response: str, position: int | None) -> None:
    assert read_choice(response, ("yes", "no"), question).position == position
    mirrored = None if position is None else 1 - position
    assert read_choice(response, ("no", "yes"), question).position == mirrored


@pytest.mark.parametrize(
    "no", ["(B) No", "B) No, it is closed.", "Answer: **(B) No**", r"\boxed{(B) No}", "No. (B)"]
)
def test_the_letter_and_the_word_of_one_side_are_one_choice(no: str) -> None:
    assert read_choice(no, ("Yes", "No"), "Is it open?").position == 1
    yes = no.replace("B", "A").replace("No", "Yes")
    assert read_choice(yes, ("Yes", "No"), "Is it open?").position == 0
    if not no.startswith("No"):
        assert read_choice(no.replace("B", "A"), ("Yes", "No"), "Is it open?").position is None


def test_an_option_may_say_that_nothing_is_known() -> None:
    options = ("red", "blue", "Cannot be determined")
    assert read_choice("It cannot be determined.", options).position == 2
    assert read_choice("I cannot determine it.", ("red", "blue")).position is None


@pytest.mark.parametrize(
    ("question", "options", "response", "position"),
    [
        # It cannot be told, or both are equal, and what only looks like it
        ("Which line is longer?", ("The red line", "The blue line"), "I can't say which is longer.", None),
        (
            "Which line is longer?",
            ("The red line", "The blue line"),
            "It is hard to say, but the red line is longer.",
            0,
        ),
        (
            "Which line is longer?",
            ("The red line", "The blue line"),
            "Both lines start at the same point. The red line is longer.",
            0,
        ),
        (
            "Which line is longer?",
            ("The red line", "The blue line"),
            "At first both look the same, but the blue line is longer.",
            1,
        ),
        (
            "Which line is longer?",
            ("The red line", "The blue line", "They are the same length"),
            "Both lines are the same length.",
            2,
        ),
        (
            "Which line is longer?",
            ("The red line", "The blue line"),
            "Both are equally long, although the red line looks longer.",
            None,
        ),
        ("Wer ist größer?", ("Der Mann", "Die Frau"), "Der Mann und die Frau sind gleich groß.", None),
        ("Wer ist größer?", ("Der Mann", "Die Frau"), "Beide sind gleich groß.", None),
        (
            "Wer ist größer?",
            ("Der Mann", "Die Frau"),
            "Beide stehen gleich weit weg. Der Mann ist größer.",
            0,
        ),
        ("¿Cuál es más grande?", ("El perro", "El gato"), "El perro y el gato tienen el mismo tamaño.", None),
        ("哪条线更长?", ("红线", "蓝线"), "两条线一样长,红线只是看起来更长。", None),
        ("哪条线更长?", ("红线", "蓝线"), "两条线颜色一样,红线更长。", 0),
        (
            "どちらの線が長いですか?",
            ("赤い線", "青い線"),
            "どちらも同じ長さです。赤い線が長く見えるだけです。",
            None,
        ),
        (
            "어느 선이 더 깁니까?",
            ("빨간 선", "파란 선"),
            "두 선의 길이가 같습니다. 빨간 선이 더 길어 보일 뿐입니다.",
            None,
        ),
        (
            "Какая линия длиннее?",
            ("Красная линия", "Синяя линия"),
            "Обе линии одинаковой длины, красная линия только кажется длиннее.",
            None,
        ),
        (
            "Quelle ligne est plus longue ?",
            ("La ligne rouge", "La ligne bleue"),
            "Les deux ont la même longueur ; la ligne rouge semble plus longue.",
            None,
        ),
        # What is compared: the first, if it is asked so
        (
            "Which circle is larger?",
            ("The left one", "The right one"),
            "The right one is larger than the left one.",
            1,
        ),
        (
            "Which circle is smaller?",
            ("The left one", "The right one"),
            "The right one is larger than the left one.",
            None,
        ),
        (
            "Welche Figur ist größer?",
            ("Die linke", "Die rechte"),
            "Die rechte Figur ist größer als die linke.",
            1,
        ),
        (
            "Welche Figur ist kleiner?",
            ("Die linke", "Die rechte"),
            "Die rechte Figur ist größer als die linke.",
            None,
        ),
        ("¿Quién es más alto?", ("El hombre", "La mujer"), "El hombre es más alto que la mujer.", 0),
        ("¿Quién es más bajo?", ("El hombre", "La mujer"), "El hombre es más alto que la mujer.", None),
        ("Qui est plus grand ?", ("L'homme", "La femme"), "La femme est plus grande que l'homme.", 1),
        ("Кто выше?", ("Мужчина", "Женщина"), "Женщина выше, чем мужчина.", 1),
        ("哪个更大?", ("苹果", "西瓜"), "西瓜比苹果大。", 1),
        ("哪个更小?", ("苹果", "西瓜"), "西瓜比苹果大。", None),
        ("どちらが大きいですか?", ("りんご", "すいか"), "すいかはりんごより大きいです。", 1),
        ("어느 것이 더 큽니까?", ("사과", "수박"), "수박이 사과보다 더 큽니다.", 1),
        ("What is she wearing?", ("a hat", "a scarf"), "She wears a hat rather than a scarf.", 0),
        # A condition for each side, and what could be
        ("Is it vegetarian?", ("Yes", "No"), "If it is tomato, yes; if it is salami, no.", None),
        ("Is it vegetarian?", ("Yes", "No"), "If it is tomato, the answer would be yes.", None),
        ("Is it vegetarian?", ("Yes", "No"), "If you look closely, you see no meat, so yes.", 0),
        ("Ist sie vegetarisch?", ("Ja", "Nein"), "Wenn es Tomaten sind, ja, wenn es Salami ist, nein.", None),
        ("¿Es vegetariana?", ("Sí", "No"), "Si es tomate, sí; si es salami, no.", None),
        ("是素食吗?", ("是", "否"), "如果是番茄,是;如果是香肠,否。", None),
        ("Sind Menschen zu sehen?", ("Ja", "Nein"), "Das könnten Menschen sein.", None),
        ("Y a-t-il des personnes ?", ("Oui", "Non"), "Ce pourraient être des personnes.", None),
        # A word of one sign, with a measure word or a particle
        ("图中是什么?", ("汤", "咖啡"), "桌上有一碗汤。", 0),
        ("图中是什么?", ("猫", "狗"), "图中有一只猫头鹰。", None),
        ("무엇입니까?", ("책", "자"), "책상입니다.", None),
        ("무엇입니까?", ("책", "자"), "이것은 책이에요.", 0),
        ("무엇입니까?", ("눈", "비"), "비행기가 보입니다.", None),
        ("무엇입니까?", ("눈", "비"), "비가 내리고 있습니다.", 1),
        # The thing asked about for the pronoun of an option
        ("Where is the cat?", ("Behind it", "On top of it"), "The cat sits behind the laptop.", 0),
        (
            "Where is the cat?",
            ("Behind it", "On top of it"),
            "The cat sits behind the laptop, not on top of the laptop.",
            0,
        ),
        ("Wo ist der Ball?", ("Hinter ihm", "Vor ihm"), "Der Ball liegt vor dem Jungen.", 1),
        ("Où est le ballon ?", ("Derrière lui", "Devant lui"), "Le ballon est derrière le garçon.", 0),
        ("Где мяч?", ("За ним", "Перед ним"), "Мяч лежит перед мальчиком.", None),
        # What is left, or what the text comes to
        ("What?", ("a kite", "a drum"), "It cannot be flown, which leaves a drum.", 1),
        ("Was?", ("ein Drachen", "eine Trommel"), "Es bleibt nur die Trommel.", 1),
        ("How many?", ("3", "4", "5"), "I count three and two behind.\n\nSo the total is 5 → **C**", 2),
        (
            "Is it open?",
            ("Yes", "No"),
            "<REASONING> The lights are on. </REASONING>\n<CONCLUSION> Yes </CONCLUSION>",
            0,
        ),
        ("Est-ce un chapeau ?", ("Oui", "Non"), "C'est une casquette, je répondrais non.", 1),
        ("照片拍摄于什么季节?", ("春天", "夏天"), "樱花盛开,最可能是春天。", 0),
        (
            "В чём смысл?",
            ("работа", "дети", "реклама"),
            "Вариант B: подходит.\nВариант C: рекламы здесь нет.\n\nОтвет: B",
            1,
        ),
        (
            "Which ship?",
            ("HMS Victory", "Constitution", "Vasa"),
            "- **A. Victory** has guns.\n- **B. Constitution** is in Boston.\n- **C. Vasa** is in Stockholm."
            "\n\nSo the ship is the Vasa.",
            2,
        ),
        ("Explain.", ("red", "blue"), "因此A和B都有道理。", None),
        ("El vaso está lleno?", ("Sí", "No"), "El vaso está lleno hasta la mitad.", None),
        ("猫在沙发上吗?", ("对", "不对"), "图中没有猫。", None),
        (
            "What is angle B?",
            ("40°", "70°"),
            "The angle at the apex is given as 40°. The sum of the three angles then gives 40° + x + x =",
            None,
        ),
        # Places in an order, and numbers with their counter
        (
            "売上が最も低いのは?",
            ("第1四半期", "第2四半期"),
            "売上が最も低いのは第2四半期で、約180万円です。",
            1,
        ),
        ("売上が最も低いのは?", ("第1四半期", "第2四半期"), "約2年間下がりました。", None),
        ("컵이 몇 개 있습니까?", ("1개", "2개", "3개"), "컵이 두 개 있습니다.", 1),
        ("개가 몇 마리입니까?", ("1", "2", "3"), "세 마리입니다.", 2),
        # One in each hand
        (
            "What does she hold?",
            ("a cup", "a book"),
            "She holds a cup in one hand, a book in the other.",
            None,
        ),
        ("What is in her left hand?", ("a cup", "a book"), "A cup in her left hand, a book in the right.", 0),
        ("What does she hold?", ("a cup", "a book"), "She holds a book; the man on the right has a cup.", 1),
        ("服务员端着什么?", ("咖啡", "汤"), "服务员左手端着一碗汤,右手端着一杯咖啡。", None),
    ],
)
def test_what_holds_for_two_options_states_neither(
    question: str, options: tuple[str, ...], response: str, position: int | None
) -> None:
    assert read_choice(response, options, question).position == position


THINGS = ("a kite", "a drum", "a lamp", "a boot")
BOATS = ("1 boat", "2 boats", "3 boats")


@pytest.mark.parametrize(
    ("question", "options", "response", "position"),
    [
        ("", THINGS, "Answer: A. a kite or B. a drum.", None),
        ("", THINGS, "정답은 A. a kite 또는 B. a drum입니다.", None),
        ("", THINGS, "The path is A → B → C.", None),
        ("", THINGS, "The incorrect answer is A.", None),
        ("", THINGS, "(B) not (A)", 1),
        ("", THINGS, "B nicht A", 1),
        ("Which is wrong?", THINGS, "The wrong answer is A.", 0),
        ("", THINGS, "It is from 300 v. C. and has strings.", None),
        ("", THINGS, "它兼具A和B的功能。", None),
        ("", THINGS, "This looks like a drum. But it is not a drum.", None),
        ("", THINGS, "A drum is shown. A kite would have a string.", 1),
        ("", THINGS, "Answer\nThe image shows a drum.", 1),
        ("", THINGS, "Answers\nA. a kite\nB. a drum\nC. a lamp\nD. a boot", None),
        ("", THINGS, "<respuesta>B</respuesta>", 1),
        ("", THINGS, "<答案>B</答案>", 1),
        ("", THINGS, "图片中可以看到一个鼓，还有很多人在公园里散步。这是a drum，旁边似乎还有", None),
        ("Welches Symbol heißt „nicht waschen“?", THINGS, "Es ist die Trommel, a drum.", 1),
        ("「No」の場合の処理は？", ("終了", "再確認"), "「No」の矢印は「再確認」につながっています。", 1),
        ("How many boats are there?", BOATS, "I see 2 swans near the shore.", None),
        ("How many boats are there?", BOATS, "There are 2 small red boats.", 1),
        ("What is the area?", ("6 cm²", "12 cm²"), "\\boxed{12}", 1),
        ("What is the area?", ("6 cm²", "12 cm²", "12 m"), "\\boxed{12}", None),
        ("Что делает женщина?", ("Готовит", "Читает"), "Рядом лежит готовый шарф.", None),
        ("Quelle est la classe du logement ?", ("A", "B", "C", "D"), "Le logement est classé D.", 3),
        ("Quelle saison ?", ("Printemps", "Été", "Automne"), "La photo a été prise en automne.", 2),
        ("Are all the windows closed?", ("yes", "no"), "Not all of them: one is open.", 1),
        ("Are all the windows closed?", ("yes", "no"), "Not all of the doors are closed.", None),
        ("모든 창문이 닫혀 있습니까?", ("예", "아니요"), "비가 오는 것은 아닙니다.", None),
        ("¿Lleva casco el niño?", ("sí", "no"), "Va en bici, es decir, sí lleva casco.", 0),
        ("¿Lleva casco el niño?", ("sí", "no"), "Bueno, sí lleva gorra, pero casco no.", None),
        ("Это круг?", ("да", "нет"), "И да, и нет: трудно решить.", None),
        ("병원이 학교의 북쪽에 있습니까?", ("예", "아니요"), "병원은 아래쪽에 표시되어 있습니다.", None),
    ],
)
def test_alternatives_paths_remarks_and_other_things_are_no_choice(
    question: str, options: tuple[str, ...], response: str, position: int | None
) -> None:
    assert read_choice(response, options, question).position == position


def test_of_a_calculation_only_the_result_is_stated() -> None:
    options = ["24 cm", "28 cm", "32 cm", "36 cm"]
    for response in (
        "However, the notch adds 2 sides, so the total is 28 + 4 = 32 cm.\n\nThe perimeter is **32 cm**.",
        "The perimeter is 28 cm + 4 cm = 32 cm.",
        "So it is 24 × 1.5 - 4 = 32 cm.",
    ):
        assert read_choice(response, options, "What is the perimeter?").position == 2
    formulas = ["2 + 3 = 5", "2 + 3 = 6"]
    assert read_choice("2 + 3 = 5", formulas).position == 0
