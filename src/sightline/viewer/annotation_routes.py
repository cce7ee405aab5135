"""Which address shows which page of annotation projects."""

from __future__ import annotations

from sightline.viewer import annotator_pages
from sightline.viewer import annotator_pages as annotator
from sightline.viewer import owner_pages as owner
from sightline.viewer.access import ROOT
from sightline.viewer.annotation_items import FormPage
from sightline.viewer.owner_pages import corrected_page
from sightline.viewer.viewer import Page

_PROJECT = f"{ROOT}/{{project:int}}"

PAGES: dict[str, Page] = {
    f"{_PROJECT}/": annotator.start,
    f"{_PROJECT}/consent": annotator.consent_page,
    f"{_PROJECT}/guidelines": annotator.guidelines_page,
    f"{_PROJECT}/item": annotator.item_page,
    f"{_PROJECT}/items/{{number:int}}": annotator.own_item_page,
    f"{_PROJECT}/items/{{number:int}}/feedback": annotator.feedback_page,
    f"{_PROJECT}/items/{{number:int}}/images/{{name}}": annotator.image,
    "/projects": owner.projects_page,
    "/projects/{project:int}": owner.project_page,
    "/projects/{project:int}/corrected": corrected_page,
    "/projects/{project:int}/items": owner.items_page,
    "/projects/{project:int}/items/{number:int}": owner.owner_item_page,
    "/projects/{project:int}/items/{number:int}/images/{name}": owner.owner_image,
    "/projects/{project:int}/export.zip": owner.export,
}
"""Path -> page."""

FORMS: dict[str, FormPage] = {
    f"{_PROJECT}/consent": annotator.consent,
    f"{_PROJECT}/items/{{number:int}}": annotator_pages.act,
    "/projects/{project:int}/items/{number:int}": owner.settle,
    "/projects/{project:int}/annotators": owner.invite_annotator,
    "/projects/{project:int}/annotators/{annotator:int}": owner.change_annotator,
    "/projects/{project:int}/state": owner.close,
}
"""Path -> what a form does."""
