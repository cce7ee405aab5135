"""The macros that all pages share: texts are escaped, marks have words, plots repeat their numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from tests.viewer.report.conftest import Render, parse_errors

from sightline.types import MetricValue, PublishedValue
from sightline.viewer.environment import content_security_policy, environment, shorten, stylesheet
from sightline.viewer.plots import PERCENT_SCALE, Scale, difference_scale, metric_plot, scale_of

MARKS = '{% import "marks.html" as m %}'
PLOTS = '{% import "plots.html" as p %}'
TEXTS = '{% import "texts.html" as t %}'
PAGE = "<!doctype html><html lang=en><head><title>x</title></head><body>{}</body></html>"

HOSTILE = "<script>alert(1)</script><img src=x onerror=a()> {{ 7*7 }} {% raw %}"
HOSTILE += " \u202eright \x1b[2J & \"quoted' \ud800"


@pytest.mark.parametrize(
    "source",
    [
        "{{ text }}",
        "<p title='{{ text }}'></p>",
        TEXTS + "{{ t.text(text, 999) }}",
        TEXTS + "{{ t.folded(text, text, 999) }}",
        TEXTS + "{{ t.notes([text]) }}",
        MARKS + "{{ m.mark('right', text) }}",
    ],
)
def test_a_text_stays_text(render: Render, source: str) -> None:
    shown = render(source, text=HOSTILE)
    assert "<script" not in shown
    assert "<img" not in shown
    assert "{{ 7*7 }}" in shown
    assert not {"\u202e", "\x1b", "\ud800"} & set(shown)
    assert "\\u202eright" in shown
    assert parse_errors(PAGE.format(shown)) == []


@given(st.text())
def test_any_text_is_shown_without_markup(text: str) -> None:
    shown = environment().from_string(TEXTS + "{{ t.text(text, 50) }}").render(text=text)
    assert "<" not in shown.replace('<span class="sub">', "").replace("</span>", "")


def test_a_name_that_a_template_misspells_is_an_error(render: Render) -> None:
    with pytest.raises(UndefinedError):
        render("{{ metrik }}")


def test_line_feeds_stay_in_responses_only(render: Render) -> None:
    assert render("{{ text }} {{ text|lines }}", text="a\nb") == "a\\nb a\nb"


def test_a_long_text_is_cut_with_a_notice(render: Render) -> None:
    shown = render(TEXTS + "{{ t.text(text, 1500) }}", text="x" * 1_000_000)
    assert "[998,500 of 1,000,000 characters are not shown]" in shown
    assert len(shown) < 2_000
    assert shorten("short").notice == ""


def test_each_mark_has_a_symbol_and_a_label(render: Render) -> None:
    verdicts = ("right", "wrong", "undecided", "miss", "refused", "error", "unscored")
    sprite = render(MARKS + "{{ m.sprite() }}")
    for verdict in verdicts:
        assert f'id="v-{verdict}"' in sprite
        assert f'aria-label="r1: {verdict}"' in render(MARKS + "{{ m.mark(v, 'r1') }}", v=verdict)


def test_a_plot_says_its_numbers(render: Render) -> None:
    figures = [
        PublishedValue("GPT-4V", 33.3, "Table 3"),
        PublishedValue("Human", 85.2, "Table 3"),
        PublishedValue("Gemini", 26.1, "Table 3", comparable=False),
    ]
    metric = MetricValue("acc_p", "all", 36.9, 84, 53, 26.9, 48.2, "wilson", published=figures)
    cell = metric_plot(metric, PERCENT_SCALE, humans=["Human"], chance=25.0)
    assert cell.label == (
        "36.9 percent, 95 % CI 26.9 to 48.2, GPT-4V published 33.3 percent, human 85.2 percent,"
        " chance 25.0 percent"
    )
    drawn = render(PLOTS + "{{ p.plot(cell) }}", cell=cell)
    assert [drawn.count(f'class="{sign}"') for sign in ("pt", "ci", "pub", "hum", "chance")] == [1] * 5
    assert parse_errors(PAGE.format(f"<table><tr><td class=pl>{drawn}</td></tr></table>")) == []


def test_a_value_without_a_number_is_a_dash(render: Render) -> None:
    metric = MetricValue("acc_p", "all", None, 0, 0, reason="nothing was answered")
    assert render(PLOTS + "{{ p.value(m) }}", m=metric) == '<span class="num">–</span>'
    assert metric_plot(metric, PERCENT_SCALE).points == ()


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_scale_holds_its_values(first: float, second: float) -> None:
    for scale in (scale_of((None, None), [first, second]), difference_scale([first, second])):
        assert scale.low <= min(first, second)
        assert max(first, second) <= scale.high
        assert 4.0 <= float(scale.x(first).rstrip("%")) <= 96.0


def test_a_value_outside_the_scale_is_at_its_end() -> None:
    assert Scale(0.0, 100.0, ()).x(140) == "96.00%"


def test_the_policy_allows_this_stylesheet_and_no_request() -> None:
    policy = content_security_policy()
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "http" not in policy
    assert "</" not in stylesheet()
    assert "url(" not in stylesheet()
    assert "@import" not in stylesheet()
