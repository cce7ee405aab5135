"""Detects answers that name the mask and not what it hides: its colour, its shape, its lines.

MM-R3 4.3.1 and A.9.3: models that a mask misleads answer 'a green square' or 'a white rectangular shape with
horizontal lines'. `sightline.scoring.non_answers.is_refusal` detects refusals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile, pairwise

from sightline.scoring.text import AUXILIARIES, FUNCTION_WORDS, colours, lexicon, words
from sightline.types import Labels

_SHAPES: Mapping[str, frozenset[str]] = {
    "rectangle": lexicon("rectangle rectangles rectangular square squares quadrilateral"),
    "ellipse": lexicon("ellipse ellipses elliptical oval ovals circle circles circular disc disk round"),
}
_THINGS: Mapping[str, frozenset[str]] = {
    "rectangle": lexicon("box boxes block blocks patch bar bars panel"),
    "ellipse": lexicon("dot spot blob ball"),
}
"""Words that mean a shape only after the mask's colour or 'solid': 'a green box'."""

_SOLID = lexicon("solid plain coloured colored")
_COLOURS = lexicon("red blue green yellow white black")
_LINE = lexicon("line stripe band bar strip streak")
_LINES = lexicon("lines stripes bands bars strips streaks")
_STRIPED = lexicon("striped stripey stripy pinstriped banded lined")
_DRAWN = (
    _COLOURS
    | _SOLID
    | lexicon(
        """grey brown orange pink purple cyan magenta dark light bright pale neon colorful colourful opaque
        translucent transparent horizontal vertical diagonal parallel thin thick wide narrow
        dashed dotted single"""
    )
)
"""How one line of a mask is described. Without such a word, a line is a queue and a bar serves drinks."""
_DESCRIBES = (
    _DRAWN
    | _STRIPED
    | lexicon(
        """straight alternating bold long short big large small little broad fine heavy blank empty spaced
        sized even equal identical regular continuous different various uniform similar simple
        distinct visible clear overlapping separate individual same whole entire masked hidden
        several multiple many few some two three four five six seven eight nine ten numerous
        other additional only just 2 3 4 5 6 7 8 9 10 a an the its their these those this that
        any all each both no such one"""
    )
)
_NUMBERS = lexicon("one two three four five six seven eight nine ten")
_COLLECTIONS = lexicon(
    "set series bunch group row rows number stack pair couple collection array sequence arrangement kind form"
)
"""Words before 'of' that belong to the description of the lines."""
_PARTS = lexicon("top bottom middle center centre left right side sides edge edges front part parts rest")
"""Parts of something; what counts is of what."""
_HOSTS = _LINE.union(_LINES, *_SHAPES.values(), _THINGS["rectangle"]) | lexicon(
    """shape shapes pattern patterns region regions area areas mask masks background surface image
    picture photo object objects thing things something anything item design texture overlay
    overlays grid figure section portion space field color colour colors colours graphic effect
    fill screen filter drawing way pixels element elements width length thickness height size shade"""
)
"""What the lines of a mask are lines of, or are drawn on: a shape, the region or the image."""
_GROUNDS = lexicon(
    """road roads street streets highway lane court pitch runway pavement asphalt floor ground
    crosswalk crossing lot track sidewalk"""
)
"""What lines are painted on: here 'over' and 'covered with' do not mean a mask."""
_REPORTS = lexicon(
    """contains contain contained containing show shows showing shown feature features featuring
    display displays displaying see seen filled includes include including consists consist
    consisting composed comprised comprises comprising depicts depicting made makes up appears
    appear appearing look looks looking like shaped marked painted drawn placed running run runs
    not mostly exhibits presents reveals represents resembles divided separated seem seems out
    into apart formed patterned notice observe"""
)
"""Words between lines and what has them, or that report them."""
_COVERS = re.compile(
    r"(?:cover|hid|obscur|block|mask|conceal|occlu|overla|censor|obstruct|interrupt|cross|superimpos|prevent"
    r"|alter|edit|modif|make)"
)
_CONCEALS = re.compile(r"(?:cover|hides?$|hiding|obscur|conceal|occlu|overla|censor|obstruct)")
_STRIPED_THINGS = lexicon(
    """zebra zebras tiger tigers cat cats bee bees fish animal fur flag flags shirt shirts jersey tie ties
    dress sweater sock socks pants fabric cloth blanket towel rug uniform umbrella jacket scarf curtain
    curtains clothes clothing cage fence railing prison"""
)
"""What has stripes or bars of its own."""
_BEHIND = lexicon("behind under underneath beneath below between through past beyond despite except besides")
_UPON = re.compile(r"(?:over|in front of|on top(?: of)?|across|through) ")
_PLACES = lexicon("on in at along around down across over above inside near from")
_SPEAKER = lexicon("there i we you")
_BREAK = ","
_CLAUSE_END = re.compile(r"[,;:()]|[.!?](?!\w)|\n")


def named_properties(response: str, labels: Labels) -> dict[str, bool | None]:
    """Which properties of its mask a response names.

    `labels`: the labels of the probe; a mask has `colour`, `shape` and `lines`. Returns whether the response
    names it, by the metric's name (`names_colour` ...), for the labels that exist; None if that is undecided.
    """
    properties: dict[str, Callable[[str, str], bool | None]] = {
        "colour": names_colour,
        "shape": names_shape,
        "lines": names_lines,
    }
    return {
        f"names_{label}": names(response, value)
        for label, names in properties.items()
        if isinstance(value := labels.get(label), str)
    }


def names_colour(response: str, colour: str) -> bool:
    """Check whether an answer contains the colour of a mask as a word.

    An object that really has that colour counts as well, so compare the shares of different colours.

    >>> names_colour("There is a green square.", "green"), names_colour("There is a greenhouse.", "green")
    (True, False)
    """
    return colour.lower() in colours(response)


def names_shape(response: str, shape: str) -> bool:
    """Check whether an answer names the shape of a mask.

    >>> names_shape("The masked region is a square.", "rectangle"), names_shape("a green box", "rectangle")
    (True, True)
    >>> names_shape("The masked region is a square.", "ellipse"), names_shape("a box of pizza", "rectangle")
    (False, False)
    """
    tokens = words(response)
    things, shapes = _THINGS.get(shape, frozenset()), _SHAPES.get(shape, frozenset({shape.lower()}))
    return bool(shapes & set(tokens)) or any(
        word in things and before in _COLOURS | _SOLID for before, word in pairwise(tokens)
    )


def names_lines(response: str, lines: str) -> bool | None:
    """Check whether an answer mentions the lines of a mask: 'horizontal lines', 'a bear behind the stripes'.

    A mask of one line covers its area without gaps, so there are no lines to name.

    >>> names_lines("a white rectangular shape with horizontal lines", "3"), names_lines("power lines", "3")
    (True, False)
    >>> names_lines("a dog behind three black bars", "3"), names_lines("a flag with three black bars", "3")
    (True, False)
    >>> names_lines("a white shape with horizontal lines", "1")
    False

    Returns:
        Whether the response mentions them; None if it is undecided whether lines are those of the mask.
    """
    if lines == "1":
        return False
    tokens = [word for clause in _CLAUSE_END.split(response) for word in (*words(clause), _BREAK)]
    readings = [
        _are_of_a_mask(tokens[:place][::-1], word, tokens[place + 1 :])
        for place, word in enumerate(tokens)
        if word in _LINE | _LINES | _STRIPED
    ]
    return True if True in readings else None if None in readings else False


def _are_of_a_mask(before: Sequence[str], word: str, after: Sequence[str]) -> bool | None:
    """Whether lines are those of a mask by the words before them, last word first, and the words after them.

    They are if they hide something, or if they are lines of a shape, of the region, or of nothing named. It
    is undecided if the response names what has stripes of its own and does not say whose they are, or if
    described lines belong to another thing: they may be drawn over it. Described lines of what has stripes of
    its own are undecided only if the response says that something is covered, but not by what.
    """
    size = _phrase_size(before)
    phrase, before = before[:size], before[size:]
    drawn = bool(_DRAWN & {*phrase})
    hide = _hidden_by(before, described=drawn if word in _LINE else bool(phrase))
    if word in _STRIPED or word in _LINE:
        noun = next((other for other in after if other not in _DESCRIBES | {"and", "like"}), _BREAK)
        described = hide or bool(_DRAWN & {*phrase, *after[1:2]})
        if noun in _LINES | _LINE or (noun not in _HOSTS and _is_of_an_object(word, noun, described)):
            return False
        after = after[after.index(noun) + 1 :] if noun in _HOSTS else after
    if after[:1] == ["of"] and after[1:2] and after[1] in _DRAWN:
        after = after[2:]
    if after[:1] == ["of" if word not in _STRIPED else "with"] and _noun(after[1:]) not in _HOSTS | {""}:
        return False
    after = list(dropwhile(lambda other: other in _REPORTS | AUXILIARIES | {"that", "which"}, after))
    if hide or _hide(after):
        return None if not hide and _host(before) in _STRIPED_THINGS else True
    if after[:1] and after[0] in _PLACES and _noun(after[1:]) not in _HOSTS | {""}:
        return False
    host = _host(before)
    if host == "":
        return None if _STRIPED_THINGS & {*before, *after} else True
    concealed = any(map(_CONCEALS.match, (*before, *after))) or before[:2] == ["of", "made"]
    return host in _HOSTS or (None if drawn and (concealed or host not in _STRIPED_THINGS) else False)


def _is_of_an_object(word: str, noun: str, described: bool) -> bool:
    """Whether the word after 'striped' or 'line' makes it an object's ('a striped cover', 'a bar stool'), or
    nothing makes a single line one of a mask."""
    return _is_content(noun) or (_COVERS.match(noun) is not None if word in _STRIPED else not described)


def _phrase_size(before: Sequence[str]) -> int:
    """How many words before lines describe them: 'a set of black and white'."""
    size = 0
    while size < len(before):
        word, other = before[size], before[size + 1] if size + 1 < len(before) else ""
        if word in _DESCRIBES or word.endswith("ly"):
            size += 1
        elif (word == "of" and other in _COLLECTIONS) or (
            size and word in {"and", "or", _BREAK} and other in _DRAWN | _NUMBERS
        ):
            size += 2
        else:
            break
    return size


def _hidden_by(before: Sequence[str], described: bool) -> bool:
    """Whether the words before lines say that these hide something: 'covered by', 'behind', 'because of'."""
    if not before:
        return False
    link, verbs = before[0], before[1:3]
    if link in _BEHIND | {"by", "with"} and any(map(_COVERS.match, verbs)):
        return _noun(before) not in _GROUNDS
    return (link in _BEHIND and described) or before[:2] in (["to", "due"], ["of", "because"])


def _hide(after: Sequence[str]) -> bool:
    """Whether the words after lines say that these hide something: 'cover the dog', 'in front of it'."""
    if after and _COVERS.match(after[0]) and not after[0].endswith(("ed", "hidden")):
        return True
    if _noun(after) == "mask":
        return True
    if not (upon := _UPON.match(" ".join(after))):
        return False
    noun = _noun(after[upon[0].count(" ") :])
    return noun not in _GROUNDS and (noun != "" or after[0] != "across")


def _host(before: Sequence[str]) -> str:
    """What has the lines: the noun before them, also of the sentence before ('It has ...'); '' if none."""
    if before[:1] == ["and"]:
        before = list(dropwhile(lambda word: word == "of" or _is_content(word), before[1:]))
    if before[:1] == [_BREAK]:
        return ""
    noun = next((word for word in before if word in _SPEAKER or _is_content(word)), "")
    return "" if noun in _SPEAKER else noun


def _noun(tokens: Sequence[str]) -> str:
    """The first noun of a clause that is no mere part ('the side of the bus'); '' if there is none."""
    for word in tokens:
        if word == _BREAK:
            break
        if word not in _PARTS and _is_content(word):
            return word
    return ""


def _is_content(word: str) -> bool:
    return word in _HOSTS | _GROUNDS or not (
        word in FUNCTION_WORDS | _REPORTS | _DESCRIBES | _PLACES | _BEHIND | {_BREAK}
        or word.endswith("ly")
        or (word.endswith("ed") and len(word) > 4)
        or _COVERS.match(word)
    )
