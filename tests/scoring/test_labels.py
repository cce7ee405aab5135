"""Labels that options carry, lists that break off, two readings, preferences after a pair."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sightline.scoring.chosen import read_choice

JA = ["ア. 犬が眠っている", "イ. 猫が歩いている", "ウ. 鳥が飛んでいる", "エ. 馬が走っている"]
KO = ["가. 개가 잔다", "나. 고양이가 걷는다", "다. 새가 난다", "라. 말이 달린다"]
ZH = ["甲. 狗在睡觉", "乙. 猫在走路", "丙. 鸟在飞", "丁. 马在跑"]
ROMAN = ["I. Sweden", "II. Norway", "III. Finland", "IV. Denmark"]
SMALL = ["(i) a kite", "(ii) a drum", "(iii) a boat", "(iv) a lamp"]
CIRCLED = ["① 春", "② 夏", "③ 秋", "④ 冬"]
LOWER = ["a. 犬", "b. 猫", "c. 鳥", "d. 馬"]
THINGS = ["a kite", "a drum", "a boat", "a lamp"]
KITES = ["凧", "太鼓", "船", "灯り"]
ZH_THINGS = ["风筝", "鼓", "船", "台灯"]
KO_THINGS = ["연", "북", "배", "등불"]


@pytest.mark.parametrize(
    ("options", "position", "replies"),
    [
        (
            JA,
            1,
            [
                "イ",
                "イ。",
                "(イ)",
                "答え：イ",
                "正解はイです。",
                "「イ」が正しいです。",
                "イが最も適切です。",
                "よって、イを選びます。",
                "答えは**イ**です。",
                "正解はイ. 猫が歩いている です。",
                "イ. 猫が歩いている",
                "アではなくイです。",
                "B",
            ],
        ),
        (JA, 3, ["エでしょう。", "最も適切なのはエだと思います。", "選択肢エが正解です。"]),
        (JA, None, ["アかイのどちらかです。", "アイスが写っています。", "ア、イともに正しいです。"]),
        (
            KO,
            1,
            [
                "나",
                "나.",
                "정답: 나",
                "정답은 나입니다.",
                "(나)",
                "정답은 (나)입니다.",
                "나. 고양이가 걷는다",
                "나가 정답입니다.",
            ],
        ),
        (KO, None, ["나는 잘 모르겠습니다.", "그림이 없다."]),
        (ZH, 2, ["丙", "丙。", "答案：丙", "答案是丙。", "选丙", "丙是正确的。", "应选丙项。", "丙. 鸟在飞"]),
        (
            ROMAN,
            2,
            [
                "III",
                "III.",
                "Answer: III",
                "The answer is III.",
                "Option III",
                "(III)",
                "**III. Finland**",
                "I think the answer is III.",
                "Die Antwort ist III.",
                "Réponse : III",
                "Ответ: III",
            ],
        ),
        (ROMAN, 0, ["I", "Answer: I", "Option I.", "The correct answer is I."]),
        (ROMAN, None, ["I am not sure about it.", "I or II"]),
        (SMALL, 3, ["iv", "(iv)", "Answer: (iv)", "The answer is iv.", "iv) a lamp"]),
        (SMALL, 0, ["(i)", "Answer: (i)", "i) a kite"]),
        (
            CIRCLED,
            1,
            ["②", "正解：②", "答え：②", "正解は②です。", "②が正しい。", "答案是②", "정답: ②", "② 夏"],
        ),
        (
            LOWER,
            1,
            [
                "b",
                "bです。",
                "答えはbです。",
                "正解はbだと思います。",
                "よってbを選びます。",
                "bが最も適切です。",
            ],
        ),
    ],
)
def test_options_are_chosen_by_the_labels_that_they_carry(
    options: Sequence[str], position: int | None, replies: Sequence[str]
) -> None:
    read = {reply: read_choice(reply, options, "").position for reply in replies}
    assert read == dict.fromkeys(replies, position)


@pytest.mark.parametrize(
    ("options", "reply"),
    [
        (JA, "アかウが正しいです。"),
        (JA, "アやエが考えられます。"),
        (JA, "アとイが当てはまります。"),
        (KO, "가와 나가 맞습니다."),
        (KO, "가 또는 나입니다."),
        (KO, "가나 다가 정답입니다."),
        (ZH, "甲或乙都有可能。"),
        (ZH, "甲和丙是正确的。"),
        (ZH, "是甲还是丁，看不出来。"),
        (ROMAN, "I and II are correct."),
        (ROMAN, "I or III."),
        (ROMAN, "Both II and IV could be right."),
        (ROMAN, "I und II sind richtig."),
        (SMALL, "Either (ii) or (iii)."),
        (CIRCLED, "①か③が考えられます。"),
        (CIRCLED, "①と②が正しい。"),
        (LOWER, "aかbが正しいです。"),
        (LOWER, "aとcが適切です。"),
    ],
)
def test_several_labels_are_no_choice(options: Sequence[str], reply: str) -> None:
    assert read_choice(reply, options, "").position is None


@pytest.mark.parametrize(
    ("options", "reply"),
    [
        (THINGS, "Let's look at each option.\n\nA. a kite: there is a string, but no tail and the shape"),
        (
            THINGS,
            "I will check the options.\n\nA: a kite - it has a string.\nB: a drum - the round thing may",
        ),
        (THINGS, "One after the other:\n\n**A.** A kite would fly in the sky, which cannot"),
        (
            THINGS,
            "Ich gehe die Optionen nacheinander durch:\n\nA: Ein Drachen hat eine Schnur, und die ist hier",
        ),
        (THINGS, "Examinons chaque option :\n\nA. a kite : il y a une ficelle, mais la forme ne"),
        (THINGS, "Analicemos cada opción:\n\nA) a kite: se ve una cuerda, aunque la forma no parece la de"),
        (THINGS, "Рассмотрим каждый вариант:\n\nA. a kite: на рисунке есть верёвка, но форма не"),
        (ZH_THINGS, "我们来逐一分析。\n\nA. 风筝：图中有一根线，但是天空中没有，"),
        (KITES, "それぞれの選択肢を検討します。\n\nA. 凧：糸は見えますが、"),
        (KO_THINGS, "각 선택지를 하나씩 살펴보겠습니다.\n\nA. 연: 실이 보이기는 하지만,"),
    ],
)
def test_a_list_of_remarks_that_breaks_off_chooses_nothing(options: Sequence[str], reply: str) -> None:
    assert read_choice(reply, options, "What is shown?").position is None


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: B\n\nA. a kite: it has no string, and there is no sky behind the thing that can be",
        "B) a drum, because the thing is round and there are two sticks that lie on top of",
        "The answer is B.\n\nThe others:\nA: there is no string.\nC: there is no water, and the",
    ],
)
def test_what_was_stated_before_a_list_that_breaks_off_counts(reply: str) -> None:
    assert read_choice(reply, THINGS, "What is shown?").position == 1


@pytest.mark.parametrize(
    ("options", "reply"),
    [
        (THINGS, "The picture can be read in two ways: as a kite (A), or as a drum (B)."),
        (THINGS, "From the left it is a kite (A), else a drum (B). Both readings are possible."),
        (THINGS, "Hier sind beide Lesarten möglich: ein Drachen (A) oder eine Trommel (B)."),
        (THINGS, "Un cerf-volant (A) ou bien un tambour (B) : deux interprétations se défendent."),
        (THINGS, "La imagen admite dos lecturas: una cometa (A) y un tambor (B)."),
        (THINGS, "Рисунок можно понять двояко: и как змея (A), и как барабан (B)."),
        (ZH_THINGS, "这幅图有两种解读：既可以看成风筝（A），也可以看成鼓（B）。"),
        (KITES, "この絵は二通りに解釈できます。凧（A）にも太鼓（B）にも見えます。"),
        (KO_THINGS, "이 그림은 두 가지로 해석할 수 있습니다. 연(A)일 수도 있고 북(B)일 수도 있습니다."),
        (THINGS, "Il est difficile de trancher. Cela ressemble à a kite, mais la photo est floue."),
    ],
)
def test_two_readings_are_no_choice(options: Sequence[str], reply: str) -> None:
    assert read_choice(reply, options, "What is shown?").position is None


@pytest.mark.parametrize(
    ("options", "reply"),
    [
        (THINGS, "Between A and B, B fits better because of the sticks."),
        (THINGS, "It is between A and B, but B is the better choice."),
        (THINGS, "Both A and B are round. Given the sticks, B is the better one."),
        (THINGS, "At first I thought of A. The sticks are a clear sign, though. That makes it B."),
        (THINGS, "A has no string in the picture. So it must be B."),
        (THINGS, "A, C and D can be excluded, that leaves B."),
        (THINGS, "Die Stöcke sprechen für eine Trommel. Damit ist es B."),
        (THINGS, "Man sieht zwei Schlägel. Also nehme ich B."),
        (THINGS, "Somit ist Aussage B korrekt, während A, C und D nicht zutreffen."),
        (THINGS, "Entre A et B, je choisis B."),
        (THINGS, "On voit deux baguettes, donc B."),
        (THINGS, "Sans doute la B."),
        (THINGS, "Entre A y B, me quedo con B."),
        (THINGS, "Sin duda, la B."),
        (THINGS, "Между A и B я бы выбрал B."),
        (THINGS, "Без сомнения, B."),
        (ZH_THINGS, "A和B之间，我更倾向于B。"),
        (ZH_THINGS, "A和B都有可能，但我更倾向于选B。"),
        (ZH_THINGS, "说法B是正确的。"),
        (KITES, "記述Bが正しいです。"),
        (KITES, "選択肢Bが最も適切だと考えます。"),
        (KITES, "AとBで迷いますが、Bのほうが適切です。"),
        (KITES, "残る B が最も適切です。"),
        (KITES, "Bの「太鼓」が正解です。"),
        (KO_THINGS, "A와 B 중에서는 B가 더 적절합니다."),
        (KO_THINGS, "진술 B가 맞습니다."),
    ],
)
def test_a_preference_or_a_conclusion_after_a_pair_is_a_choice(options: Sequence[str], reply: str) -> None:
    assert read_choice(reply, options, "What is shown?").position == 1


@pytest.mark.parametrize(
    ("options", "position", "reply"),
    [
        (THINGS, 1, "The best choice is:\n\nB. a drum - it has two sticks and a round skin that"),
        (THINGS, 1, "Analysis:\n- A: no\n- B: yes, two sticks\n- C: no water\n- D: no light\n\nB"),
        (THINGS, 1, "You can look at it in two ways, but the answer is B."),
        (THINGS, 1, "It is hard to tell from the photo. It's probably a drum."),
        (THINGS, 1, "Ohne Zweifel B."),
        (THINGS, None, "I have no drum in mind."),
        (JA, 2, "アとイは画像に合いません。ウが正解です。"),
        (JA, 3, "ア、イ、ウは誤りです。したがってエが正解です。"),
        (JA, 2, "正解はウの「鳥が飛んでいる」です。"),
        (JA, None, "アイコンが見えます。"),
        (ROMAN, 1, "The answer is II. World War I was earlier."),
        (ROMAN, 1, "Sweden (I) is not shown, so the answer is II (Norway)."),
        (ROMAN, 2, "Not II but III."),
        (ROMAN, None, "I am an AI and can't see images."),
        (ZH, 3, "排除甲和乙，选丁。"),
        (ZH, None, "甲板上有人。"),
        (KO, 1, "가. 개가 잔다는 틀렸습니다. 정답은 나입니다."),
        (KO, None, "나도 모르겠다."),
    ],
)
def test_a_letter_within_a_longer_reply_is_read_by_what_stands_beside_it(
    options: Sequence[str], position: int | None, reply: str
) -> None:
    assert read_choice(reply, options, "What is shown?").position == position
