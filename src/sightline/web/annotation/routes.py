"""Which address shows which page of annotation projects."""

from __future__ import annotations

from sightline.web.annotation import annotator_pages as annotator
from sightline.web.annotation.form_fields import FormPage
from sightline.web.annotation.gate import ROOT
from sightline.web.viewer import Page

_PROJECT = f"{ROOT}/{{project:int}}"

PAGES: dict[str, Page] = {
    f"{_PROJECT}/": annotator.start,
    f"{_PROJECT}/consent": annotator.consent_page,
    f"{_PROJECT}/guidelines": annotator.guidelines_page,
    f"{_PROJECT}/item": annotator.item_page,
    f"{_PROJECT}/items/{{number:int}}": annotator.own_item_page,
    f"{_PROJECT}/items/{{number:int}}/feedback": annotator.feedback_page,
    f"{_PROJECT}/items/{{number:int}}/images/{{name}}": annotator.image,
}
"""Path -> page."""

FORMS: dict[str, FormPage] = {
    f"{_PROJECT}/consent": annotator.consent,
    f"{_PROJECT}/items/{{number:int}}": annotator.act,
}
"""Path -> what a form does."""
