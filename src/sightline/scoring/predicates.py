"""Yes or no in Chinese, Japanese and Korean: what a clause says of the predicate of a question.

In Chinese a predicate follows its subject, in Japanese and Korean it ends the clause. A clause states what
the question asks if it has its predicate, affirmed or denied, and no noun that the question has not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from sightline.scoring.answer_words import word_pattern


class _Predicate(NamedTuple):
    """The predicate of a clause without endings, the rest of the clause, and whether it is denied."""

    rest: str
    predicate: str
    denied: bool


_CJK_CLAUSES = {
    "zh": re.compile(r"[，,、；;。！!]"),
    "ja": re.compile(r"[、,;。！!]|(?:ので|から|ため|が)[、,]|(?<=[るたいな])ので"),
    "ko": re.compile(
        r"[,;.!]\s*|(?:므로|니까|(?<=[하있없않이])지만|때문에|뿐|있어|되어(?!\s있)|(?<=[어아여])서)\s+"
    ),
}
_BRACKETED = re.compile(r"[(（\[][^()（）\[\]]*[)）\]]")
_ASKS = re.compile(r"(?:[吗嗎呢か까]|나요|[가어아]요)$")
_COMPARES = re.compile(r"比|より|보다|高于|低于|大于|小于|多于|少于|超过")
_SUPPOSED = re.compile(
    r"如果|要是|假如|若是|不会说|有人说|もし|(?:れば|たら|なら)[、,]|とは言え"
    r"|만약|(?:다|라|으)면\s|다고는|것은 아니"
)
_SIGN = re.compile(r"[\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7afA-Za-z0-9]")
_FILLERS = re.compile(
    r"目前|此时|还|還|まだ|아직|の姿|已经|已經|已|东西|東西|现在|現在|应该|應該|其实|其實|实际上|明显|显然|的确|确实|確實|并|並|都|也|就|图中|圖中|图片中|画面中|"
    r"現在|実際|確かに|実は|画像|写真|현재|지금|실제로|분명히|사진|그림|이미지|모두|두|속|에는|에서|에"
)


def predicate_at_end(question: str, sentences: Sequence[str], language: str) -> bool | None:
    """Whether the clauses that have the predicate of the question affirm it, in zh, ja and ko."""
    parts = [
        part.strip() for part in re.split(r"[。？?！!.\n]", _BRACKETED.sub("", question)) if part.strip()
    ]
    question = next((part for part in reversed(parts) if _ASKS.search(part)), parts[-1] if parts else "")
    asked = PREDICATES[language](question)
    if asked is None or asked.denied:
        return None
    lead = (
        r"{concludes}|{revises}|{nouns}\s*[:：]" if language == "zh" else "{concludes}|{pronouns}|{revises}"
    )
    words = word_pattern(rf"^[\s]*(?:{lead})[\s,，、]*", (language,))
    unsure = word_pattern("{unsure}|{tentative}", (language,))
    found = set()
    for sentence in sentences:
        if _SUPPOSED.search(sentence):
            return None
        for part in _CJK_CLAUSES[language].split(_BRACKETED.sub("", sentence)):
            clause = words.sub("", _HEDGES[language].sub("", part.strip(" \t\n.。!！?？「」\"'")))
            if unsure.search(clause):
                return None
            said = PREDICATES[language](_ZH_SOME.sub("", clause) if language == "zh" else clause)
            if said is not None and _same_predicate(said, asked, question, clause):
                found.add(not said.denied)
    return found.pop() if len(found) == 1 else None


_HEDGES = {
    "zh": re.compile(r"^(?:应该|應該|看来|显然|明显|的确|确实|其实)(?=.)|(?:的样子|呢|哦|喔|啊)$"),
    "ja": re.compile(r"(?:よう|みたい|そう)(?:です|だ|に見えます)?$"
        r"|(?:もの)?と(?:思われ|思い|考えられ|言え|判断でき|見られ)\w*$"),
    "ko": re.compile(r"\s*것(?:으로|이라고|처럼)?\s*(?:보입|판단됩|생각됩|추정됩|보여|같습|입)\S*$"),
}  # fmt: skip


def _same_predicate(said: _Predicate, asked: _Predicate, question: str, clause: str) -> bool:
    rest = said.rest
    if said.predicate != asked.predicate:
        if re.search(r"[\u3041-\u30ff\uac00-\ud7af]", question):
            return False
        parted = _same_end(_FILLERS.sub("", said.predicate), _FILLERS.sub("", asked.predicate), clause)
        if parted is None:
            return False
        rest = parted
    signs = _SIGN.findall(_FILLERS.sub("", rest))
    asked_signs = _SIGN.findall(_FILLERS.sub("", question.replace("可以", "能")))
    if not said.denied and not _begins_a_phrase(clause, question):
        return False
    if signs and signs[0] != asked_signs[0] and (compares := _COMPARES.search(question)):
        # In Chinese what is compared stands before the word that compares, in Japanese and Korean both do.
        before = "" if compares[0] in ("より", "보다") else question[: compares.start()]
        if signs[0] not in before:
            return False
    in_order = iter(asked_signs)
    return all(sign in in_order for sign in signs)


def _same_end(said: str, asked: str, clause: str) -> str | None:
    """What stands before the predicate of a Chinese clause that ends as the question; None if it does not."""
    if asked.startswith(said) and asked[len(said) : len(said) + 1] in ("在", "是", "有"):
        return None  # '没有猫' of '猫在沙发上吗': the thing itself
    if len(said) <= 3 and said in asked and re.search(r"[了过過没沒不未无無]|^有$", clause):
        return ""  # '戴了', '没戴'
    asked = asked.lstrip("的")
    if not said or not asked:
        return None
    if len(said) > 3 and said[0] == asked[0] and said[-1] == asked[-1]:
        return said
    same = next(
        (i for i, (one, other) in enumerate(zip(said[::-1], asked[::-1], strict=False)) if one != other),
        min(len(said), len(asked)),
    )
    if same < 2 or asked[-same - 1 :][0] == "的":
        return None
    whole = said[: len(said) - same]
    rest = re.sub(r"^(?:[它他她]们?|这个|那个|这|那|该|其)?是?", "", whole)
    led = whole or said[0] in "是在有能会可" or _ZH_DENIED.search(clause)
    return rest if led else None


def _begins_a_phrase(clause: str, question: str) -> bool:
    """Whether a Japanese or Korean clause starts where a phrase of the question does: 犬 is not 赤い犬."""
    first = re.search(r"[^\s\u3041-\u309f]+", clause)
    if first is None or not re.search(r"[\u3041-\u30ff\uac00-\ud7af]", question):
        return True
    word = first[0] if re.search("[\u3041-\u30ff]", question) else first[0][:2]
    at = question.rfind(word)
    return (
        at <= 0
        or (first.start() > 0 and question[:at] == clause[: first.start()])
        or re.search(r"[はがもをにで、「]$|(?:[은는이가을를에도서과와로]|보다)\s$", question[:at]) is not None
    )


_ZH_DENIED = re.compile(r"(?:并|並)?(?:没有|沒有|没|沒|不|未|无|無)(?=.)")
_ZH_ASKS = re.compile(r"是否|有没有|有沒有|是不是|([\u3400-\u9fff])[不没沒]\1")
_ZH_COUNT = r"(?<=[有着著是戴拿])[一两兩几](?!样|樣|起|直|定|些)[\u3400-\u9fff]"
_ZH_SOME = re.compile(rf"{_ZH_COUNT}(?:[^，。]{{0,6}}的)?")
_ZH_ENDS = re.compile(r"[吗嗎呢吧么的了]+$")
_ZH_ASPECT = re.compile(
    r"[着著了]|[过過](?=[的了吗嗎]|$)|已经|已經|已|看到|看见|看見|发现|發現|找到|看不到(?=.)|正(?=在)"
)


def _zh_predicate(text: str) -> _Predicate | None:
    text = _ZH_ASKS.sub(lambda found: found[0][0] if found[0][0] in "有是" else found[1], text)
    if len(found := _ZH_DENIED.findall(text)) > 1:
        return None
    text = re.sub(_ZH_COUNT, "", text.replace("可以", "能"))
    text = _ZH_ENDS.sub("", _ZH_ASPECT.sub("", _ZH_DENIED.sub("", text)))
    return _Predicate("", text, bool(found)) if text else None


_JA_TAIL = re.compile(r"[\u3041-\u309f]*$")
_JA_NO = re.compile(r"ない|ません|なかった|ず$|なく$|なし$")
_JA_NO_DENIAL = re.compile(r"しかな|違いな|かもしれ|なければ|なくては|ないか|わけでは|とは限|少な|危な")
_JA_EXISTS = re.compile(r"(?:見当た|見え|写って|写ら|写り|見られ|存在し|描かれて)(?=[\u3041-\u309f])")
_JA_PARTICLE = re.compile(r"^(?:には|では|は|が|を|に|で|も|と)(?=[\u3041-\u309f])")


def _ja_predicate(text: str) -> _Predicate | None:
    if _JA_NO_DENIAL.search(text):
        return None
    text = re.sub(r"は(?:いけ|なり|だめ|駄目)\w*$", "もいいない", text)
    text = re.sub(r"(?:です|の)?か$", "", _JA_EXISTS.sub("あり", _FILLERS.sub("", text)))
    tail = _JA_TAIL.search(text)
    assert tail is not None
    denied = _JA_NO.search(tail[0]) is not None
    before, kana = text[: tail.start()], tail[0]
    if not before or ((particle := _JA_PARTICLE.match(kana)) and not re.match(r"では?(?:す|な|あ|$)", kana)):
        kana = kana[particle.end() :] if before and particle else kana
        kana = re.sub(r"^(?:い(?:る|ます|ません|ない)|あ(?:る|り)|ない$)", "あり", kana)
        return _Predicate(before, kana[:2], denied) if kana else None
    run = re.search(r"[^\s\u3041-\u309f]+$", before)
    if run is None:
        return None
    word = re.sub(r"中$", "", run[0])
    return _Predicate(before[: run.start()], word, denied) if word else None


_KO_ENDS = re.compile(
    unicodedata.normalize(
        "NFD",
        r"\s*(?:습니까|습니다|나요|인가요|은가요|는가요|(?:어|아|여|해|네)요|군요|죠|지요|음|함|입니까|입니다|이에요|예요|이다|인가|는가|"
        r"은|는|다)$",
    )
    + "|[\u11b8]"
    + unicodedata.normalize("NFD", "(?:니까|니다)$")
)
_KO_NO = re.compile(r"(?:지(?:는|도|를)?|이|가|은|는)\s*(?:않|아니|아닙|못|아님)\S*$")
_KO_RIGHT = re.compile(r"(?:이|가)\s*맞\S*$")
_KO_SEEN = re.compile(r"보(?:이|입|여)(?=\S)\S*$")
_KO_PARTICLES = re.compile(r"(?:은|는|이|가|을|를|에|의|도|로|으로|에서|에는|과|와)$")


def _ko_predicate(text: str) -> _Predicate | None:
    text, denied = re.sub(r"면 안 (?=되|됩|돼)", "도 ", text), "면 안 " in text
    text = _KO_RIGHT.sub("입니다", text)
    if found := re.search(r"없(?:습|어|다|음|는|나)\S*$", text):
        text, denied = f"{text[: found.start()]}있다", True
    elif found := _KO_NO.search(text):
        text, denied = text[: found.start()], True
    if found := re.search(rf"(?:{_KO_SEEN.pattern})|보이$", text):
        text = f"{text[: found.start()]}있다"
    text = re.sub(r"있음$", "있다", text.strip())
    text = _KO_ENDS.sub("", unicodedata.normalize("NFD", text)).rstrip("\u11af")
    words = re.sub("(?:하|중|되)$", "", unicodedata.normalize("NFC", text)).split()
    if not words:
        return None
    size = 2 if len(words) > 1 and words[-1] in ("있", "되") and not _KO_PARTICLES.search(words[-2]) else 1
    rest = " ".join(_KO_PARTICLES.sub("", word) for word in words[:-size])
    return _Predicate(rest, " ".join(words[-size:]), denied)


PREDICATES = {"zh": _zh_predicate, "ja": _ja_predicate, "ko": _ko_predicate}
"""Language -> what finds the predicate of a clause; None if it has none."""
