"""Replies to yes/no questions that say what the question asks, deny it, or say something else."""

from __future__ import annotations

import pytest

from sightline.scoring.chosen import read_choice

YES, NO = 0, 1

SPACED = [
    ("Is the shop open?", "It's not open yet.", 1),
    ("Is the shop open?", "The shop is not open.", 1),
    ("Is the shop open?", "The shop would be open on a weekday.", None),
    ("Is the shop open?", "If the shop is open, the light is on.", None),
    ("Is the shop open?", "The shop next door is open.", None),
    ("Is the shop open?", "I would not say that the shop is open.", None),
    ("Is the shop open?", "I wouldn't say the shop is not open.", None),
    ("Is the shop open?", "The question asks whether the shop is open.", None),
    ("Is the shop open?", "The shop is open on weekdays only.", None),
    ("Is the shop open?", "The shop was open yesterday, not today.", None),
    ("Is the shop open?", "The shop's window is open.", None),
    ("Is the man on the left smiling?", "The man on the left is smiling.", 0),
    ("Is the man on the left smiling?", "He is smiling.", 0),
    ("Is the man on the left smiling?", "The man is smiling.", 0),
    ("Is the man on the left smiling?", "The man on the right is smiling.", None),
    ("Is the man on the left smiling?", "The man on the right is smiling, the man on the left is not.", 1),
    ("Is the man on the left smiling?", "The woman is smiling.", None),
    ("Is the woman wearing a hat?", "She isn't wearing one.", 1),
    ("Is the woman wearing a hat?", "She is wearing a red hat.", 0),
    ("Is the woman wearing a hat?", "She's not wearing a hat.", 1),
    ("Is the woman wearing a hat?", "The woman is wearing a hat with flowers.", 0),
    ("Is the woman wearing a hat?", "The man is wearing a hat.", None),
    ("Is the woman wearing a hat?", "She is wearing a scarf.", None),
    ("Is the woman wearing a red hat?", "She is wearing a hat.", None),
    ("Is the woman wearing a red hat?", "She isn't wearing a hat.", 1),
    ("Is the woman wearing a hat?", "She isn't wearing a scarf.", None),
    ("Is the woman wearing a hat?", "She isn't wearing a red hat.", None),
    ("Is there a dog in the image?", "There is a dog house in the image.", None),
    ("Is there a dog in the image?", "There's a cat.", None),
    ("Is there a dog in the image?", "A dog is sitting on the grass.", 0),
    ("Is there a dog in the image?", "There is no dog on the sofa.", None),
    ("Is there a dog in the image?", "I don't see a dog.", 1),
    ("Is there a dog in the image?", "I see no dog here.", 1),
    ("Is there a dog in the image?", "There isn't one.", 1),
    ("Is there a dog in the image?", "Someone might see a dog here.", None),
    ("Is there a red car?", "There is a red bus and a blue car.", None),
    ("Is there a red car?", "There is a blue car.", None),
    ("Is there a clock on the wall?", "There is a clock on the table.", None),
    ("Is there a clock on the wall?", "There is a clock.", None),
    ("Is the dog chasing the cat?", "The cat is chasing the dog.", None),
    ("Jagt der Hund die Katze?", "Die Katze jagt den Hund.", None),
    ("Jagt der Hund die Katze?", "Der Hund jagt die Katze.", 0),
    ("Ist die Tür offen?", "Die Tür ist noch nicht offen.", 1),
    ("Ist die Tür offen?", "Wenn die Tür offen ist, zieht es.", None),
    ("Ist die Tür offen?", "Die Tür ist offen.", 0),
    ("Ist die Tür offen?", "Das Fenster ist offen.", None),
    ("Trägt die Frau einen Hut?", "Sie trägt keinen.", 1),
    ("Trägt die Frau einen Hut?", "Sie trägt einen Hut.", 0),
    ("Trägt die Frau einen Hut?", "Sie trägt einen roten Hut.", 0),
    ("Trägt die Frau einen Hut?", "Der Mann trägt einen Hut.", None),
    ("La porte est-elle ouverte ?", "La porte n'est pas ouverte.", 1),
    ("La porte est-elle ouverte ?", "Elle est ouverte.", 0),
    ("La porte est-elle ouverte ?", "On ne peut pas dire que la porte n'est pas ouverte.", None),
    ("La femme porte-t-elle un chapeau ?", "Elle n'en porte pas.", 1),
    ("La femme porte-t-elle un chapeau ?", "Elle porte un chapeau rouge.", 0),
    ("¿Está abierta la puerta?", "La puerta está abierta.", 0),
    ("¿Está abierta la puerta?", "La puerta no está abierta.", 1),
    ("¿Está abierta la puerta?", "No está abierta.", 1),
    ("¿Lleva sombrero la mujer?", "Lleva sombrero.", 0),
    ("¿Lleva sombrero la mujer?", "No lleva.", 1),
    ("¿Lleva sombrero la mujer?", "El hombre lleva sombrero.", None),
    ("Открыт ли магазин?", "Магазин ещё не открыт.", 1),
    ("Открыт ли магазин?", "Магазин открыт.", 0),
    ("Открыт ли магазин?", "Если магазин открыт, горит свет.", None),
    ("Есть ли на фото собака?", "На фото нет собаки.", 1),
    ("Есть ли на фото собака?", "На фото есть кошка.", None),
    ("Женщина в шляпе?", "Она не в шляпе.", 1),
    ("Is the box heavier than the bag?", "The bag is heavier than the box.", None),
    ("Is the box heavier than the bag?", "It is not heavier than the bag.", 1),
    ("Are all cups full?", "Not all cups are full.", 1),
    ("Are all cups full?", "Some cups are full.", None),
    ("Are all cups full?", "Only the left cups are full.", None),
    ("Is the light green?", "It's not green but red.", 1),
    ("Is the light green?", "The light isn't green anymore.", 1),
    ("Is the light green?", "The light is far from green.", None),
    ("Is the light green?", "It is hard to tell if the light is green.", None),
    ("Is the light green?", "It is not impossible that the light is green.", None),
    ("Is the light green?", "Green.", 0),
    ("Is the light green?", "Not green.", 1),
    ("Is the light green?", "The light.", None),
]
"""Question, reply, and what it says: suppositions, other subjects, parts and doubled denials say neither."""

OF_CHINESE_JAPANESE_KOREAN = [
    ("图中的商店正在营业吗？", "商店明天才营业。", None),
    ("图中的商店正在营业吗？", "如果灯亮着，商店在营业。", None),
    ("图中的商店正在营业吗？", "旁边的银行在营业。", None),
    ("图中的商店正在营业吗？", "我不会说商店没有营业。", None),
    ("图中的商店正在营业吗？", "商店不是没有营业。", None),
    ("图中的人戴眼镜了吗？", "左边的人戴了眼镜，右边的人没戴。", None),
    ("图中的人戴眼镜了吗？", "没戴", 1),
    ("图中的人戴眼镜了吗？", "没有戴帽子", None),
    ("图中的人戴眼镜了吗？", "戴了帽子", None),
    ("女孩在男孩的左边吗？", "男孩在女孩的左边。", None),
    ("猫比狗大吗？", "狗比猫大。", None),
    ("写真の店は開いていますか？", "隣の店は開いています。", None),
    ("写真の店は開いていますか？", "開いていないわけではありません。", None),
    ("写真の店は開いていますか？", "もし電気がついていれば、開いています。", None),
    ("写真の店は開いていますか？", "開いているとは言えません。", None),
    ("写真の店は開いていますか？", "開いていると思います。", 0),
    ("写真の店は開いていますか？", "閉まっています。", None),
    ("写真の店は開いていますか？", "まだ開いていません", 1),
    ("女性は帽子をかぶっていますか？", "男性は帽子をかぶっています。", None),
    ("女性は帽子をかぶっていますか？", "帽子はかぶっていません。", 1),
    ("女性は帽子をかぶっていますか？", "眼鏡をかけていません。", None),
    ("문이 열려 있습니까?", "창문이 열려 있습니다.", None),
    ("문이 열려 있습니까?", "문이 닫혀 있지 않습니다.", None),
    ("문이 열려 있습니까?", "열려 있지 않습니다.", 1),
    ("여자가 모자를 쓰고 있나요?", "남자가 모자를 쓰고 있습니다.", None),
    ("여자가 모자를 쓰고 있나요?", "쓰고 있지 않아요.", 1),
    ("여자가 모자를 쓰고 있나요?", "쓰고 있지 않다고는 할 수 없습니다.", None),
    ("고양이가 있습니까?", "강아지가 있습니다.", None),
    ("고양이가 있습니까?", "고양이가 없는 것은 아닙니다.", None),
    ("고양이가 있습니까?", "고양이가 있다면 좋겠습니다.", None),
    ("人がいますか？", "誰もいません。", None),
    ("犬はいますか？", "猫はいません。", None),
    ("犬はいますか？", "猫がいます。", None),
    ("グラフは増加していますか？", "減少しています。", None),
    ("数は少ないですか？", "少ないです。", None),
    ("这是猫吗？", "不是，是狗。", 1),
    ("这是猫吗？", "是一只狗，不是猫。", 1),
    ("图中有猫吗？", "有一只狗。", None),
    ("图中有猫吗？", "有一只黑色的猫。", 0),
    ("图中有猫吗？", "没有狗。", None),
    ("图中有猫吗？", "有人说有猫。", None),
    ("灯是绿色的吗？", "不是绿色。", 1),
    ("灯是绿色的吗？", "左边的灯是绿色的。", None),
    ("灯是绿色的吗？", "难道是绿色的吗？", None),
]

CALLED_TRUE_OR_FALSE = [
    ("The triangle is right-angled.", "The claim is false.", 1),
    ("The triangle is right-angled.", "The statement is true.", 0),
    ("The triangle is right-angled.", "The statement is not true.", 1),
    ("The triangle is right-angled.", "The claim is not supported.", 1),
    ("The triangle is right-angled.", "The claim would be false if the angle were 80°.", None),
    ("The triangle is right-angled.", "I cannot say whether the statement is true.", None),
    ("Die Linie steigt.", "Die Aussage trifft zu.", 0),
    ("Die Linie steigt.", "Die Aussage trifft nicht zu.", 1),
    ("Die Linie steigt.", "Die Aussage ist falsch.", 1),
    ("Die Linie steigt.", "Die Behauptung stimmt also.", 0),
    ("La ligne monte.", "L'affirmation est fausse.", 1),
    ("La ligne monte.", "Cette affirmation n'est pas fausse.", None),
    ("Линия растёт.", "Это ложное утверждение.", 1),
    ("Линия растёт.", "Утверждение неверно.", 1),
    ("Линия растёт.", "Утверждение верно.", 0),
    ("La línea sube.", "La afirmación es falsa.", 1),
    ("La línea sube.", "La afirmación no es correcta.", 1),
    ("折线上升，这个说法对吗？", "这个说法是错误的。", 1),
    ("折线上升，这个说法对吗？", "这个说法是正确的。", 0),
    ("線は上昇している。この記述は正しいですか。", "この記述は誤りです。", 1),
    ("선은 상승한다. 이 설명은 맞습니까?", "이 설명은 틀렸습니다.", 1),
]


@pytest.mark.parametrize(("question", "reply", "position"), [*SPACED, *OF_CHINESE_JAPANESE_KOREAN])
def test_a_reply_says_what_is_asked_or_denies_it_or_says_neither(
    question: str, reply: str, position: int | None
) -> None:
    assert read_choice(reply, ["yes", "no"], question).position == position
    swapped = None if position is None else 1 - position
    assert read_choice(reply, ["no", "yes"], question).position == swapped


@pytest.mark.parametrize(("statement", "reply", "position"), CALLED_TRUE_OR_FALSE)
def test_a_statement_is_called_true_or_false(statement: str, reply: str, position: int | None) -> None:
    assert read_choice(reply, ["true", "false"], statement).position == position


@pytest.mark.parametrize(
    ("options", "question", "reply", "position"),
    [
        (["戴了", "没戴"], "图中儿童是否佩戴了安全头盔？", "没有佩戴", 1),
        (["有", "无"], "图中的句子有错别字吗？", "无错别字。", 1),
        (["ある", "ない"], "スライドに誤字はありますか?", "誤字は見当たりません。", 1),
        (["있다", "없다"], "식탁 위에 젓가락이 있습니까?", "젓가락은 없습니다.", 1),
        (["합동이다", "합동이 아니다"], "두 삼각형은 합동입니까?", "닮음일 뿐 합동은 아닙니다.", 1),
        (["open", "not open"], "Is the shop open?", "It is not open.", 1),
        (["open", "closed"], "Is the shop open?", "It is not open.", None),
    ],
)
def test_an_option_and_its_denial_are_yes_and_no(
    options: list[str], question: str, reply: str, position: int | None
) -> None:
    assert read_choice(reply, options, question).position == position


COLOURS = ["red", "green", "blue", "yellow"]
UMBRELLA = "What colour is the umbrella of the girl?"


@pytest.mark.parametrize(
    ("options", "question", "reply", "position"),
    [
        (COLOURS, UMBRELLA, "The umbrella of the girl is green, the coat yellow.", 1),
        (COLOURS, UMBRELLA, "The coat is yellow, while the umbrella of the girl is green.", 1),
        (COLOURS, UMBRELLA, "The umbrella of the girl looks green, but it is blue.", 2),
        (COLOURS, UMBRELLA, "The umbrella of the girl is green and blue.", None),
        (COLOURS, UMBRELLA, "If the umbrella of the girl were green, the coat was blue.", None),
        (COLOURS, UMBRELLA, "The umbrella of the girl is green. The umbrella of the girl is red.", None),
        (["住房", "餐饮", "交通"], "占比最大的支出是？", "餐饮占比最大（32%），其次是住房（28%）。", 1),
        (["Rojo", "Azul", "Verde"], "¿De qué color es la puerta?", "La puerta es roja.", 0),
        (["Чёрный", "Синий"], "Какого цвета зонт?", "черного", 0),
        (["Impressionismus", "Surrealismus"], "In welchem Stil?", "surrealistisch", 1),
        (
            ["Chad", "Niger", "Mali"],
            "Which country is highlighted?",
            "The highlighted country is Nigeria.",
            None,
        ),
        (["Anton Tschechow", "Nikolai Gogol"], "Wer schrieb es?", "Dies ist ein Buch Gogols.", 1),
        (["Money isn't everything.", "Art is free."], "What is meant?", "Money is not everything", 0),
        (["Because the dog ran", "Because it rained"], "Why?", "The dog ran away.", 0),
        (
            ["Save water", "Not smoke near children"],
            "What is asked?",
            "People are asked not to smoke near children.",
            1,
        ),
        (["It is to the left of the tree", "The tree is to the left of it"], "Where?", "Left of what?", None),
        (["100,00 €", "119,00 €"], "Wie hoch ist der Betrag?", "Brutto also 119 Euro.", 1),
        (["0,5 A", "1 A", "1,5 A"], "Quelle intensité ?", "I = U/R = 6/4 = 1.5A", 2),
        (["y = 2x + 1", "y = -2x + 1"], "Which line?", "So it is $y=-2x+1$.", 1),
        (["12 cm²", "24 cm²"], "Which area?", "The area is 24 cm^2.", 1),
        (["织田信长", "德川家康"], "谁？", "德川", 1),
    ],
)
def test_options_in_other_forms_and_beside_others(
    options: list[str], question: str, reply: str, position: int | None
) -> None:
    assert read_choice(reply, options, question).position == position
