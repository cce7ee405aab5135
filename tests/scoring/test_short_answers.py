"""Short and indirect forms in which responses state an option, and near forms that state none."""

from __future__ import annotations

import pytest

from sightline.scoring.chosen import read_choice

YES_NO = """
Is the door open?|It is open.|Y
Is the door open?|It isn't open.|N
Is the door open?|It's not open.|N
Is the door open?|It is closed.|-
Is it open?|It is closed.|-
Is the door open?|It is open on Sundays only.|-
Is the door open?|It is almost open.|-
Is the door open?|It was open.|-
Is the door open?|It is open and red.|-
Is the door open?|It is open. The sign says so.|Y
Is the door open?|It is open, but not today.|-
Is the door open?|It might be open.|-
Is the red door open?|It is red.|-
Is the red door open?|It is open.|Y
Is the traffic light green?|It is green.|Y
Is the car bright red?|It is red.|-
Is the car big and red?|It is red.|-
Are the flowers red?|They are red.|Y
Are the flowers red?|It is red.|-
Are the flowers red?|They aren't red.|N
Are the flowers red?|They're not.|N
Are people swimming?|They are swimming.|Y
Does the woman wear a hat?|She does not wear a hat.|N
Does the woman wear a hat?|She wears a hat.|Y
Does the woman wear a hat?|He wears a hat.|-
Does the woman wear a hat?|She wears a red hat.|Y
Does the woman wear a hat?|It is a hat.|-
Does the woman wear a red hat?|She wears a hat.|-
Is the woman wearing a hat?|It is a hat.|-
Is the woman wearing a hat?|She is wearing a hat.|Y
Is the woman wearing a hat?|She isn't wearing a hat.|N
Is the woman wearing a hat?|She isn't wearing one.|N
Is the man on the left smiling?|He is smiling.|Y
Is the man smiling?|He is not smiling.|N
Is the ball on the box?|It is in the box.|-
Is the ball on the box?|It is on the box.|Y
Is the ball on the box?|It is not on the box.|N
Is there a dog in the image?|I can see a dog.|Y
Is there a dog in the image?|A dog is visible.|Y
Is there a dog in the image?|There isn't any.|N
Is there a dog in the image?|There isn't one.|N
Is there a dog in the image?|I can see a toy dog.|-
Is there a dog in the image?|I can't see a dog.|N
Is there a dog in the image?|I can see a cat.|-
Is there a dog on the bed?|There is a dog.|-
Can the man swim?|He can't swim.|N
Can the man swim?|He can swim.|Y
Can the man swim?|He cannot swim.|N
Ist die Tür offen?|Sie ist offen.|Y
Ist die Tür offen?|Sie ist nicht offen.|N
Ist die Tür offen?|Sie ist geschlossen.|-
Trägt die Frau einen Hut?|Sie trägt einen Hut.|Y
Trägt die Frau einen Hut?|Sie trägt keinen Hut.|N
Trägt die Frau einen roten Hut?|Sie trägt einen Hut.|-
Trägt sie einen roten Hut?|Sie trägt einen Hut.|-
Ist ein Hund auf dem Bett?|Es ist ein Hund.|-
La porte est-elle ouverte ?|Elle est ouverte.|Y
La porte est-elle ouverte ?|Elle n'est pas ouverte.|N
Est-ce que la porte est ouverte ?|Elle est ouverte.|Y
La femme porte-t-elle un chapeau ?|Elle porte un chapeau.|Y
La femme porte-t-elle un chapeau ?|Elle ne porte pas de chapeau.|N
La femme porte-t-elle un chapeau rouge ?|Elle porte un chapeau.|-
¿Está abierta la puerta?|Está abierta.|Y
¿La puerta está abierta?|Está abierta.|Y
¿Está abierta la puerta?|No está abierta.|N
¿Lleva un sombrero rojo?|Lleva un sombrero.|-
¿Hay un perro en la cama?|Hay un perro.|-
¿Está abierta la puerta?|Está cerrada.|-
Дверь открыта?|Она открыта.|Y
Дверь открыта?|Она не открыта.|N
Открыта ли дверь?|Она открыта.|Y
Носит ли женщина шляпу?|Она носит шляпу.|Y
Носит ли женщина красную шляпу?|Она носит шляпу.|-
Дверь открыта?|Она закрыта.|-
门是开着的吗？|它是开着的。|Y
门是开着的吗？|它不是开着的。|N
门是开着的吗？|它是关着的。|-
这个女人戴着帽子吗？|她戴着帽子。|Y
这个女人戴着帽子吗？|她没有戴帽子。|N
这个女人戴着帽子吗？|没有戴帽子。|N
这个女人戴着红色的帽子吗？|她戴着帽子。|-
这是一辆红色的汽车吗？|它是汽车。|-
图中的汽车是红色的吗？|它是红色的。|Y
图中的汽车是红色的吗？|是红色的。|Y
ドアは開いていますか？|開いています。|Y
ドアは開いていますか？|開いていません。|N
ドアは開いていますか？|閉まっています。|-
この人は眼鏡をかけていますか？|かけていません。|N
この人は眼鏡をかけていますか？|眼鏡をかけています。|Y
女性は赤い帽子をかぶっていますか？|帽子をかぶっています。|-
これは犬ですか？|犬です。|Y
これは犬ですか？|犬ではありません。|N
これは赤い犬ですか？|犬です。|-
車は赤いですか？|赤くないです。|N
車は赤いですか？|赤いです。|Y
문이 열려 있나요?|열려 있습니다.|Y
문이 열려 있나요?|열려 있지 않습니다.|N
문이 열려 있나요?|닫혀 있습니다.|-
여자가 모자를 쓰고 있나요?|모자를 쓰고 있지 않습니다.|N
여자가 모자를 쓰고 있나요?|모자를 쓰고 있습니다.|Y
이것은 개입니까?|개입니다.|Y
이것은 개입니까?|개가 아닙니다.|N
이것은 빨간 개입니까?|개입니다.|-
Is the door open?|Certainly.|Y
Is the door open?|Of course.|Y
Is the door open?|Absolutely.|Y
Is the door open?|Exactly.|Y
Is the door open?|Right.|Y
Is the door open?|That's right.|Y
Is the door open?|True.|Y
Is the door open?|**True**|Y
Is the door open?|Answer: True|Y
Is the door open?|I think so.|Y
Is the door open?|Sure, it is.|Y
Is the door open?|Certainly, the door is open.|Y
Is the door open?|Absolutely! One sees the hall.|Y
Is the door open?|False.|N
Is the door open?|Wrong.|N
Is the door open?|Not quite.|N
Is the door open?|I doubt it.|N
Is the door open?|Hardly.|N
Is the door open?|Of course not.|N
Is the door open?|I don't think so.|N
Is the door open?|Wrong. The door is shut.|N
Is the door open?|On the contrary, the bolt is drawn.|N
Is the door open?|Certainly! I can describe the image.|-
Is the door open?|Of course! Here is a description of the hall.|-
Is the door open?|Sure! Let me look at it.|-
Is the door open?|Sure, I can help with that.|-
Is the door open?|Absolutely! The image shows a hall.|-
Is the door open?|Right, let me see.|-
Is the door open?|Right?|-
Is the door open?|True or false?|-
Is the door open?|Of course, it is hard to say.|-
Is the door open?|Certainly, the door is not open.|N
Is the door open?|On the contrary, the door is open.|-
Is the door open?|Wrong. It is open.|-
Is the door open?|Not necessarily.|-
Is the door open?|Maybe.|-
Is the door open?|Probably.|-
Is the door open?|It depends.|-
Is the door open?|Not sure.|-
Is the door open?|No doubt about it.|Y
Is the door open?|The right door.|-
Is the door open?|A true masterpiece.|-
Is the door open?|False colours.|-
Is the door open?|Wrong image.|-
Is the door open?|Exactly two people.|-
Is the door open?|Never mind.|-
Is the door open?|Hardly visible.|-
Isn't the door open?|Right.|-
Is the door not open?|Certainly.|-
Is it wrong to park here?|Wrong.|-
Is it wrong to park here?|Certainly.|Y
Is the car on the left?|Right.|-
Is the door open?|Yes.⏎No.|-
Is the door open?|Yes. No.|-
Is the door open?|No. Yes.|-
Is the door open?|Yes. No, wait, no.|N
Is the door open?|No, wait, yes.|Y
门开着吗？|当然。|Y
门开着吗？|没错。|Y
门开着吗？|正确。|Y
门开着吗？|错误。|N
门开着吗？|当然不是。|N
门开着吗？|不完全是。|N
门开着吗？|当然！我来描述这张图片。|-
门开着吗？|正确答案无法确定。|-
门开着吗？|未必。|-
门开着吗？|可能。|-
门开着吗？|是的。不对，不是。|N
门是不是开着的？|当然。|Y
ドアは開いていますか？|もちろん。|Y
ドアは開いていますか？|その通りです。|Y
ドアは開いていますか？|間違いありません。|Y
ドアは開いていますか？|違います。|N
ドアは開いていますか？|誤りです。|N
ドアは開いていますか？|そうは思いません。|N
ドアは開いていますか？|もちろん、画像を説明します。|-
ドアは開いていますか？|はい。いいえ。|-
ドアは開いていますか？|そうかもしれません。|-
ドアは開いていますか？|たぶん。|-
문이 열려 있나요?|물론입니다.|Y
문이 열려 있나요?|그럼요.|Y
문이 열려 있나요?|사실입니다.|Y
문이 열려 있나요?|거짓입니다.|N
문이 열려 있나요?|전혀 아닙니다.|N
문이 열려 있나요?|네. 아니요.|-
문이 열려 있나요?|글쎄요.|-
문이 열려 있나요?|아마도요.|-
문이 열려 있나요?|물론, 이미지를 설명하겠습니다.|-
Ist die Tür offen?|Natürlich.|Y
Ist die Tür offen?|Das ist richtig.|Y
Ist die Tür offen?|Wahr.|Y
Ist die Tür offen?|Falsch.|N
Ist die Tür offen?|Natürlich nicht.|N
Ist die Tür offen?|Wohl kaum.|N
Ist die Tür offen?|Das bezweifle ich.|N
Ist die Tür offen?|Nicht ganz.|N
Ist die Tür offen?|Natürlich! Ich beschreibe das Bild.|-
Ist die Tür offen?|Sicher ist das schwer zu sagen.|-
Ist die Tür offen?|Falsche Tür.|-
Ist die Tür offen?|Vielleicht.|-
Ist die Tür offen?|Kaum zu sehen.|-
Ist die Tür nicht offen?|Richtig.|-
Ist die Aussage falsch?|Falsch.|-
La porte est-elle ouverte ?|Bien sûr.|Y
La porte est-elle ouverte ?|C'est exact.|Y
La porte est-elle ouverte ?|Vrai.|Y
La porte est-elle ouverte ?|Faux.|N
La porte est-elle ouverte ?|Bien sûr que non.|N
La porte est-elle ouverte ?|J'en doute.|N
La porte est-elle ouverte ?|Pas vraiment.|N
La porte est-elle ouverte ?|Bien sûr ! Je vais décrire l'image.|-
La porte est-elle ouverte ?|Elle est fermée.|-
La porte est-elle ouverte ?|Elle est ouverte le dimanche.|-
La porte est-elle ouverte ?|Peut-être.|-
La porte est-elle ouverte ?|Une fausse porte.|-
Дверь открыта?|Конечно.|Y
Дверь открыта?|Верно.|Y
Дверь открыта?|Правда.|Y
Дверь открыта?|Неверно.|N
Дверь открыта?|Ложь.|N
Дверь открыта?|Вряд ли.|N
Дверь открыта?|Сомневаюсь.|N
Дверь открыта?|Не совсем.|N
Дверь открыта?|Конечно, опишу изображение.|-
Дверь открыта?|Возможно.|-
Дверь открыта?|Неправильная дверь.|-
Дверь не открыта?|Верно.|-
¿Está abierta la puerta?|Por supuesto.|Y
¿Está abierta la puerta?|Es cierto.|Y
¿Está abierta la puerta?|Verdadero.|Y
¿Está abierta la puerta?|Falso.|N
¿Está abierta la puerta?|Claro que no.|N
¿Está abierta la puerta?|Lo dudo.|N
¿Está abierta la puerta?|¡Por supuesto! Describo la imagen.|-
¿Está abierta la puerta?|Quizás.|-
¿Está abierta la puerta?|Una puerta falsa.|-
¿Está abierta la puerta?|Es difícil de decir.|-
"""
"""A question, a response (⏎ ends a line), and what it states: Y, N, or - for nothing."""

OTHER_SIDES = [
    (("True", "False"), "Yes.", 0),
    (("True", "False"), "No.", 1),
    (("false", "true"), "Certainly.", 1),
    (("Correct", "Incorrect"), "Wrong.", 1),
    (("right", "wrong"), "That's true.", 0),
    (("richtig", "falsch"), "Ja.", 0),
    (("vrai", "faux"), "Non.", 1),
    (("верно", "неверно"), "Да.", 0),
    (("verdadero", "falso"), "No.", 1),
    (("正しい", "正しくない"), "はい。", 0),
    (("맞다", "틀리다"), "아니요.", 1),
    (("正确", "错误"), "是的。", 0),
    (("left", "right"), "Certainly.", None),
    (("left", "right"), "That's true.", None),
    (("Yes", "No", "Cannot be told"), "Of course.", 0),
    (("Yes", "No", "Partly"), "Not quite.", None),
    (("a kite", "a drum"), "Certainly.", None),
]

SHOWN = "Which object is shown?"
LISTS = [
    (
        ("a kite", "a drum", "a red boat"),
        SHOWN,
        [
            ("A. a kite\n**B. a drum** ✅\nC. a red boat", "B"),
            ("A. a kite\nB. a drum ✓\nC. a red boat", "B"),
            ("A. a kite\nB. a drum ←\nC. a red boat", "B"),
            ("A. a kite\nB. a drum <--\nC. a red boat", "B"),
            ("A. a kite\nB. a drum (correct)\nC. a red boat", "B"),
            ("A. a kite\nB. a drum (correct answer)\nC. a red boat", "B"),
            ("[ ] A. a kite\n[x] B. a drum\n[ ] C. a red boat", "B"),
            ("- [ ] a kite\n- [x] a drum\n- [ ] a red boat", "B"),
            ("☐ A\n☑ B\n☐ C", "B"),
            ("A. a kite\n**B. a drum**\nC. a red boat", "B"),
            ("**A. a kite**\n**B. a drum**\nC. a red boat", "-"),
            ("**A.** a kite\n**B.** a drum\n**C.** a red boat", "-"),
            ("A. a kite ✅\nB. a drum ✅\nC. a red boat", "-"),
            ("A. a kite\n**B. a drum**\nC. a red boat\nNone of these fits.", "-"),
            ("A. a kite\n→ B. a drum\nC. a red boat", "B"),
            ("A. a kite\n✅ B. a drum\nC. a red boat", "B"),
            ("A. a kite ❌\nB. a drum ❌\nC. a red boat ❌", "-"),
            ("A. a kite\nB. a drum ❌\nC. a red boat", "-"),
            ("A) a kite\nB) a drum 👈\nC) a red boat", "B"),
            ("1. a kite\n2. a drum ✅\n3. a red boat", "B"),
            ("| A | no |\n| B | yes |", "B"),
            ("| A | no |\n| B | yes |\n| C | yes |", "-"),
            ("| | Correct? |\n|---|---|\n| A. a kite | ✗ |\n| B. a drum | ✓ |\n| C. a red boat | ✗ |", "B"),
            ("| | Ruled out |\n|---|---|\n| A | no |\n| B | yes |\n| C | no |", "-"),
            ("| | Has strings |\n|---|---|\n| A. a kite | yes |\n| B. a drum | no |\n| C | no |", "-"),
            ("| | Round | Skin |\n|---|---|---|\n| A | no | no |\n| B | yes | yes |\n| C | no | no |", "-"),
            ("A | no\nB | yes\nC | no", "B"),
            ("A. a kite\nB. a drum ✅\nC. a red boat\n\nAnswer: C", "C"),
            ("Option 2", "B"),
            ("The second option", "B"),
            ("the second option.", "B"),
            ("The second one.", "B"),
            ("second", "B"),
            ("the last one", "C"),
            ("2", "-"),
            ("2)", "-"),
            ("Option 4", "-"),
            ("Option two", "B"),
            ("Option #2", "B"),
            ("Not the second option.", "-"),
            ("The second option is wrong.", "-"),
            ("Answer: the second one", "B"),
            ("I'd go with the last one.", "C"),
            ("It's the second one.", "B"),
            ("The second one. No, the last one.", "-"),
            ("the second or the third", "-"),
            ("Option 2 is correct.", "B"),
            ("Option 0", "-"),
            ("The fourth one", "-"),
            ("Is it the second one?", "-"),
            ("the first two", "-"),
            ("For a second, I hesitated.", "-"),
            ("The last one is a boat", "-"),
            ("The second one from the left plays an instrument.", "-"),
            ("The last one to leave closes it.", "-"),
        ],
    ),
    (
        ("一只猫", "一只狗", "一辆车"),
        "图中是什么？",
        [
            ("第二个", "B"),
            ("第二个选项", "B"),
            ("选项2", "B"),
            ("选项二", "B"),
            ("最后一个", "C"),
            ("答案是第二个", "B"),
            ("第2个", "B"),
            ("不是第二个", "-"),
            ("A. 一只猫\nB. 一只狗 ✅\nC. 一辆车", "B"),
            ("A. 一只猫\nB. 一只狗（正确）\nC. 一辆车", "B"),
            ("| A | 否 |\n| B | 是 |\n| C | 否 |", "B"),
        ],
    ),
    (
        ("猫", "犬", "車"),
        "何が写っていますか？",
        [
            ("2番目", "B"),
            ("二番目です。", "B"),
            ("選択肢2", "B"),
            ("二つ目の選択肢です", "B"),
            ("最後の選択肢", "C"),
            ("二番目ではありません", "-"),
            ("A. 猫\nB. 犬（正解）\nC. 車", "B"),
            ("| A | いいえ |\n| B | はい |\n| C | いいえ |", "B"),
        ],
    ),
    (
        ("고양이", "개", "자동차"),
        "무엇입니까?",
        [
            ("두 번째", "B"),
            ("두 번째 보기", "B"),
            ("두 번째입니다.", "B"),
            ("2번", "B"),
            ("2번입니다.", "B"),
            ("보기 2", "B"),
            ("마지막 선택지", "C"),
            ("두 번째가 아닙니다", "-"),
            ("A. 고양이\nB. 개 (정답)\nC. 자동차", "B"),
        ],
    ),
    (
        ("eine Katze", "ein Hund", "ein Auto"),
        "Was ist zu sehen?",
        [
            ("Die zweite", "B"),
            ("Die zweite Option", "B"),
            ("Option 2", "B"),
            ("die letzte", "C"),
            ("Die zweite Antwort", "B"),
            ("Ich wähle die zweite Option.", "B"),
            ("Nicht die zweite.", "-"),
            ("A. eine Katze\nB. ein Hund (richtig)\nC. ein Auto", "B"),
            ("| A | nein |\n| B | ja |\n| C | nein |", "B"),
        ],
    ),
    (
        ("un chat", "un chien", "une voiture"),
        "Que voit-on ?",
        [
            ("la deuxième", "B"),
            ("La deuxième option", "B"),
            ("l'option 2", "B"),
            ("la dernière", "C"),
            ("C'est la deuxième.", "B"),
            ("Pas la deuxième.", "-"),
            ("le deuxième choix", "B"),
            ("A. un chat\nB. un chien (correct)\nC. une voiture", "B"),
        ],
    ),
    (
        ("кошка", "собака", "машина"),
        "Что на фото?",
        [
            ("второй", "B"),
            ("Второй вариант", "B"),
            ("вариант 2", "B"),
            ("последний", "C"),
            ("Вариант номер 2", "B"),
            ("Не второй.", "-"),
            ("A. кошка\nB. собака (верно)\nC. машина", "B"),
            ("| A | нет |\n| B | да |\n| C | нет |", "B"),
        ],
    ),
    (
        ("un gato", "un perro", "un coche"),
        "¿Qué se ve?",
        [
            ("la segunda", "B"),
            ("La segunda opción", "B"),
            ("opción 2", "B"),
            ("la última", "C"),
            ("Es la segunda.", "B"),
            ("La segunda no.", "-"),
            ("A. un gato\nB. un perro (correcta)\nC. un coche", "B"),
        ],
    ),
]
"""Options, a question, and responses with the letter that each chooses, or - for none."""

COUNTED = [
    (("left", "right"), "Which one?", "the second one", None),
    (("2 dogs", "3 dogs"), "How many?", "the second one", None),
    (("a dog", "a cat"), "Which of the two animals is bigger?", "the second one", None),
    (("a dog", "a cat"), "Which of the two animals is bigger?", "The second option", 1),
    (("two dogs", "one dog"), "How many?", "Option 2", None),
    (("the first runner", "the second runner"), "Who wins?", "the last one", None),
    (("1. a kite", "2. a drum"), "What is it?", "2", 1),
]


@pytest.mark.parametrize("line", YES_NO.strip().splitlines())
def test_short_answers_state_yes_or_no_and_near_forms_state_nothing(line: str) -> None:
    question, response, stated = line.replace("⏎", "\n").split("|")
    position = {"Y": 0, "N": 1, "-": None}[stated]
    assert read_choice(response, ("Yes", "No"), question).position == position
    mirrored = None if position is None else 1 - position
    assert read_choice(response, ("No", "Yes"), question).position == mirrored


@pytest.mark.parametrize(("options", "response", "position"), OTHER_SIDES)
def test_assents_and_denials_choose_among_all_kinds_of_sides(
    options: tuple[str, ...], response: str, position: int | None
) -> None:
    assert read_choice(response, options, "The door is open.").position == position


@pytest.mark.parametrize(
    ("options", "question", "response", "letter"),
    [(options, question, *row) for options, question, rows in LISTS for row in rows],
)
def test_a_mark_in_a_list_or_a_place_chooses_an_option(
    options: tuple[str, ...], question: str, response: str, letter: str
) -> None:
    position = None if letter == "-" else "ABC".index(letter)
    assert read_choice(response, options, question).position == position


@pytest.mark.parametrize(("options", "question", "response", "position"), COUNTED)
def test_a_place_counts_only_where_it_can_be_no_other_count(
    options: tuple[str, ...], question: str, response: str, position: int | None
) -> None:
    assert read_choice(response, options, question).position == position
