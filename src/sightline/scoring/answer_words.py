"""The words with which responses state, deny and join, in eight languages, and patterns of them.

`answer_words.toml` has them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from sightline.scoring.text import lexicon

EDGE = "A-Za-z0-9_\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u1e00-\u1eff"
CASED = re.compile(f"[{EDGE}]")
# EDGE has both cases; `re` takes a millisecond to compile these ranges for any case.
AT_START, AT_END = f"(?<!(?-i:[{EDGE}]))", f"(?!(?-i:[{EDGE}]))"
"""Signs next to which a word of a script with blanks goes on; Chinese, Japanese and Korean signs do not."""

_LATIN = ("en", "de", "fr", "es", "pt")
TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")

Languages = tuple[str, ...]

LETTER, TEXT, LAST = "\ue000", "\ue400", "\ue7ff"
"""Signs of mentions: of letters from U+E000, of texts from U+E400, in the order of the options."""


@cache
def word_lists() -> Mapping[str, Mapping[str, Sequence[Any]]]:
    """The words by language and name of their list; of ordinals the forms of each."""
    text = (files(__package__) / "answer_words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text.replace("ё", "е"))


@cache
def words_of(name: str, languages: Languages | None = None) -> frozenset[str]:
    """The words of a list, of all languages unless some are named."""
    chosen = (
        word_lists() if languages is None else {language: word_lists()[language] for language in languages}
    )
    return frozenset(
        word
        for lists in chosen.values()
        for one in lists.get(name, ())
        for word in ((one,) if isinstance(one, str) else one)
    )


_OF_ANY_LANGUAGE = lexicon(
    """ordinals last ones listed verdicts images pronouns descriptions true false assents openers dissents
    doubts claims holds wrong unable likely pair equal seems conditions would objects than"""
)
"""Lists whose words say little about the language of a text."""


@cache
def _vocabulary(language: str) -> frozenset[str]:
    return frozenset(
        part
        for name, words in word_lists()[language].items()
        if name not in _OF_ANY_LANGUAGE
        for word in words
        for part in word.split()
    )


def languages_of(text: str) -> Languages:
    """The languages of a text: by its scripts, and of Latin words those that know the most of them."""
    found = []
    if re.search(r"[\u3040-\u30ff]", text):
        found.append("ja")
    elif re.search(r"[\u3400-\u9fff]", text):
        found.append("zh")
    if re.search(r"[\uac00-\ud7af]", text):
        found.append("ko")
    if re.search(r"[\u0400-\u04ff]", text):
        found.append("ru")
    words = set(re.findall(r"[a-z\u00df-\u024f]{2,}", text[:4000].casefold()))
    known = {language: len(words & _vocabulary(language)) for language in _LATIN}
    most = max(known.values())
    if words and (most or not found):
        found += [language for language in _LATIN if known[language] >= 0.7 * most]
    return tuple(found or ["en"])


@cache
def phrases(words: frozenset[str]) -> str:
    """A pattern of any of the phrases, the longest first; '(?!)' for none."""
    between: dict[tuple[str, str], list[str]] = {}
    for word in sorted(words, key=lambda one: (-len(one), one)):
        start = AT_START if word != "n't" and CASED.match(word) else ""
        end = AT_END if CASED.match(word[-1]) else ""
        part = r"\s+".join(map(re.escape, word.split())).replace("'", "['’]")
        between.setdefault((start, end), []).append(part)
    parts = [f"{start}(?:{'|'.join(found)}){end}" for (start, end), found in between.items()]
    return f"(?:{'|'.join(parts)})" if parts else "(?!)"


_LIST = re.compile(r"\{([a-z_]+)\}")


@cache
def word_pattern(form: str, languages: Languages) -> re.Pattern[str]:
    """Compile a pattern in which `{name}` stands for the words of a list, and `{M}` for a mention."""
    form = _LIST.sub(lambda found: phrases(words_of(found[1], languages)), form)
    form = form.replace("{M}", f"(?-i:[{LETTER}-{LAST}])")
    return re.compile(form, re.IGNORECASE)


@cache
def places_of(name: str, languages: Languages) -> Mapping[str, int]:
    """The place of each word, or of the forms of one, in the list of its language: of numbers the number."""
    return {
        word: place
        for language in languages
        for place, one in enumerate(word_lists()[language].get(name, ()))
        for word in ((one,) if isinstance(one, str) else one)
    }


_SIMPLIFIED = str.maketrans(
    "圖張這個們為與對錯誤確實選項沒無麼嗎後邊裡裏來說話時間車門開關電視機場紅綠藍黃貓鳥魚馬過還會應該業證數學寫讀書畫風買賣頭髮臉鏡褲長寬雙條隻檯臺國員歲歡樂醫藥術線"
    "點從當動態勢變標誌識讓請問題號碼壓縮發現見觀聽聲聯網紙結構經濟總計論據準備獎蘋氣拋單雲樹葉橋樓陽霧雞鴨豬龍蟲飛師傘帶裝飾鐘錶錄東廠廣庫廳園圓環藝護愛憂傷驚訝憤樣"
    "種類處歷產農礦銀鐵銅鋼塊鏈錢價貨質貴賽體腦腳剛幾兩萬億歐亞韓漢語詞譯義節約禮廢積極壞輕遠較適則",
    "图张这个们为与对错误确实选项没无么吗后边里里来说话时间车门开关电视机场红绿蓝黄猫鸟鱼马过还会应该业证数学写读书画风买卖头发脸镜裤长宽双条只台台国员岁欢乐医药术线"
    "点从当动态势变标志识让请问题号码压缩发现见观听声联网纸结构经济总计论据准备奖苹气抛单云树叶桥楼阳雾鸡鸭猪龙虫飞师伞带装饰钟表录东厂广库厅园圆环艺护爱忧伤惊讶愤样"
    "种类处历产农矿银铁铜钢块链钱价货质贵赛体脑脚刚几两万亿欧亚韩汉语词译义节约礼废积极坏轻远较适则",
)  # fmt: skip
"""The frequent signs of traditional Chinese, and their simplified forms."""


def simplified(text: str) -> str:
    return text.translate(_SIMPLIFIED)


_IN_FULL = {
    "n't": " not",
    "'re": " are",
    "it's": "it is",
    "he's": "he is",
    "she's": "she is",
    "that's": "that is",
}
_CONTRACTED = re.compile(r"(?:n't|'re|\b(?:it|he|she|that)'s)\b", re.IGNORECASE)


def expanded(text: str) -> str:
    """A text without contractions: 'it is not' of 'it isn't'."""
    return _CONTRACTED.sub(lambda found: _IN_FULL[found[0].casefold()], text)


# -- Labels

FILL = r"[\s\"'“”‘’「」『』《》〈〉«»【】\[\](){}<>*_:：=,，.、#•\-–—→⇒|]*"
"""What may stand between a label and what it labels: blanks, brackets, quotes, marks."""


def label_pattern(languages: Languages) -> re.Pattern[str]:
    """What labels an answer: 'Answer:', 'I choose', '答案是'."""
    between = rf"(?:[\s*\"'(]+[^\s.:：=?？\n{LETTER}-{LAST}]+){{0,7}}?"
    alone = r"\s*\n+(?=[\s(]*(?:{M}|[A-Za-z]\W*(?:$|\n)))"
    return word_pattern(
        rf"(?:(?P<noun>{{nouns}})(?:{between}\s*{{links}}|[\s*\"')\]」】]*[:：=]|\s*】|\s+[-–—]\s|{alone})"
        r"|(?m:^){nouns}(?=[ \t]*\n)"  # a heading
        rf"|(?!选项|選項){{choosing}}|最[^，。,\n]{{1,8}}是|[→⇒]|=>)[ \t:：]*",
        languages,
    )
