"""The pages of runs and groups: what they show, lead to and export."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.viewer.conftest import ACCESS, HOST, TOKEN

from sightline.cli.main import main
from sightline.evaluation.reports import compare_words
from sightline.evaluation.result import recompute
from sightline.store.store import Store
from sightline.viewer.access import AccessControl
from sightline.viewer.app import create_app
from training.scenes.build import generate_mmr3


def shown(client: TestClient, address: str) -> str:
    """A page, once the index of its run is built."""
    for _ in range(200):
        answer = client.get(address)
        assert answer.status_code == 200, answer.text
        if 'hx-trigger="load' not in answer.text:
            return answer.text
        time.sleep(0.1)
    raise AssertionError(answer.text)


def test_the_leaderboard_has_the_value_of_each_run_with_its_interval(
    client: TestClient, store: Store
) -> None:
    page = shown(client, "/")
    value = next(one for one in recompute(store, 2).metrics if (one.metric, one.subset) == ("acc_p", "all"))
    assert value.value is not None
    assert f'href="/runs/2">{value.value:.1f}</a>' in page
    assert "baseline/<wbr>chance" in page
    assert "the data are synthetic" in page
    assert "<tbody>\n</tbody>" in shown(client, "/?model=gpt").replace("\n\n", "\n")


def test_the_page_of_a_run_shows_its_leading_metrics_and_leads_to_groups(client: TestClient) -> None:
    page = shown(client, "/runs/1")
    assert "<h1>base on codis:default</h1>" in page
    assert "<h3>acc_p<span" in page
    addresses = re.findall(r'href="(/runs/1/group\?id=[^"&]+)"', page)
    assert len(addresses) == 6
    assert client.get(addresses[0]).status_code == 200


def test_metrics_json_is_that_of_the_run(client: TestClient, store: Store) -> None:
    shown(client, "/runs/1")
    content = json.loads(client.get("/runs/1/metrics.json").content)
    assert content["metrics"][0]["value"] == recompute(store, 1).metrics[0].value


def test_every_group_is_on_exactly_one_page(client: TestClient) -> None:
    address, numbers = "/runs/1/groups", []
    while address:
        page = shown(client, address)
        numbers += re.findall(r'<a href="/runs/1/group\?id=([^"&]+)"', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = following[1] if following else ""
    assert sorted(map(int, numbers)) == list(range(30))


def test_filters_live_in_the_address_and_the_filtered_view_is_exported(client: TestClient) -> None:
    page = shown(client, "/runs/1/groups?right=none")
    total = re.search(r"(\d+) of 30 groups", page)
    assert total is not None
    lines = client.get("/runs/1/answers.jsonl?right=none").text.splitlines()
    outcomes = [json.loads(line) for line in lines]
    assert len({one["group"] for one in outcomes}) == int(total[1]) < 30
    assert all(one["verdict"] != "right" for one in outcomes)
    assert 'href="/runs/1/answers.jsonl?right=none"' in page


def test_the_order_of_groups_lives_in_the_address_and_leads_through_the_groups(client: TestClient) -> None:
    page = shown(client, "/runs/1/groups?order=data&right=none")
    numbers = re.findall(r'<a href="/runs/1/group\?id=(\d+)&', page)
    assert numbers == sorted(numbers)
    assert '<option value="data" selected>' in page
    assert "least similar" not in page
    group = client.get(f"/runs/1/group?id={numbers[0]}&right=none&order=data").text
    assert f'rel="next" href="/runs/1/group?id={numbers[1]}&amp;right=none&amp;order=data"' in group
    assert client.get("/runs/1/groups?order=colour").status_code == 400


def test_a_search_finds_questions_and_keeps_the_other_filters(client: TestClient) -> None:
    page = shown(client, "/runs/1/groups?right=none&search=the")
    assert '<input type="hidden" name="right" value="none">' in page
    assert 'value="the"' in page
    assert "0 of 30" in shown(client, "/runs/1/groups?search=quetzalcoatl")


def test_a_group_shows_every_answer_with_its_context_and_leads_to_its_neighbours(client: TestClient) -> None:
    first = re.findall(r'<a href="(/runs/1/group\?id=[^"&]+)"', shown(client, "/runs/1/groups"))
    page = client.get(first[1]).text
    assert page.count('<article class="probe"') == 2
    assert page.count("<h4>Context</h4>") == 2
    assert f'rel="prev" href="{first[0]}"' in page
    assert f'rel="next" href="{first[2]}"' in page
    assert "sightline run codis:default --model baseline/chance --data /" in page


def test_a_group_stands_beside_the_same_group_of_each_other_run_of_its_benchmark(
    client: TestClient, store: Store
) -> None:
    for run in (1, 2):
        shown(client, f"/runs/{run}/groups")
    page = shown(client, "/runs/1/group?id=007")
    assert 'href="/runs/2/group?id=007"' in page
    assert "/compare?run=1&amp;run=2" in page
    cells = re.findall(r'<td><div class="said">.*?aria-label="(\w+)".*?<p class="resp">(.*?)</p>', page)
    expected = [
        (one["verdict"], one["response"])
        for run in (1, 2)
        for one in map(json.loads, client.get(f"/runs/{run}/answers.jsonl").text.splitlines())
        if one["sample"] == "007"
    ]
    assert cells == expected
    names = re.findall(r'<th scope="col" class="num">(\w+)</th>', page)
    values = re.findall(r'<td class="num">([-.\d]+)</td>', page)
    both_right = [all(verdict == "right" for verdict, _ in expected[start : start + 2]) for start in (0, 2)]
    place = names.index("acc_p")
    assert values[place :: len(names)] == [f"{100 * right:.1f}" for right in both_right]
    assert "--ids 007 " in page


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/runs/99", 404),
        ("/runs/1/group?id=030", 404),
        ("/runs/1/group?id=000&draw=1", 404),
        ("/runs/1/group", 404),
        ("/runs/1/groups?right=maybe", 400),
        ("/runs/1/groups?after=x", 400),
        ("/runs/1/groups?order=similarity", 400),
        ("/runs/1/groups?after=99999999999999", 404),
        ("/runs/x", 404),
        ("/runs/99999999999999999999999", 404),
    ],
)
def test_a_wrong_address_says_what_is_wrong(client: TestClient, address: str, status: int) -> None:
    shown(client, "/runs/1/groups")
    answer = client.get(address)
    assert answer.status_code == status
    assert "Traceback" not in answer.text


def test_images_are_shown_by_their_digest_and_kept_by_browsers(client: TestClient) -> None:
    page = shown(client, "/runs/1/group?id=000")
    address = re.search(r'src="(/runs/1/images/[0-9a-f]{64})"', page)
    assert address is not None
    answer = client.get(address[1])
    assert answer.headers["content-type"].startswith("image/")
    assert "immutable" in answer.headers["cache-control"]
    thumbnail = client.get(address[1].replace("images", "thumbnails"))
    assert thumbnail.headers["content-type"] == "image/webp"


@pytest.mark.parametrize("digest", ["0" * 64, "..%2F..%2Fetc%2Fpasswd", "x", "%00"])
def test_no_other_file_is_shown(client: TestClient, digest: str) -> None:
    shown(client, "/runs/1/groups")
    assert client.get(f"/runs/1/images/{digest}").status_code == 404


def test_an_image_that_changed_is_reported_and_not_shown(client: TestClient, codis: Path) -> None:
    page = shown(client, "/runs/1/group?id=000")
    address = re.search(r'src="(/runs/1/images/[0-9a-f]{64})"', page)
    name = re.search(r'alt="Image ([^"]+)"', page)
    assert address is not None
    assert name is not None
    file = codis / name[1]
    content = file.read_bytes()
    other = next(one for one in sorted(file.parent.iterdir()) if one.read_bytes() != content)
    file.write_bytes(other.read_bytes())
    try:
        page = client.get("/runs/1/group?id=000").text
        assert "not the image that was sent" in page
        assert address[1] not in page
        assert client.get(address[1]).status_code == 404
    finally:
        file.write_bytes(content)


def test_an_image_that_leads_out_of_the_folder_is_not_shown(
    client: TestClient, codis: Path, tmp_path: Path
) -> None:
    page = shown(client, "/runs/1/group?id=000")
    address = re.search(r'src="(/runs/1/images/[0-9a-f]{64})"', page)
    name = re.search(r'alt="Image ([^"]+)"', page)
    assert address is not None
    assert name is not None
    file, outside = codis / name[1], tmp_path / "outside.png"
    outside.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(outside)
    try:
        assert client.get(address[1]).status_code == 404
        assert address[1] not in client.get("/runs/1/group?id=000").text
    finally:
        file.unlink()
        file.write_bytes(outside.read_bytes())


def test_runs_are_listed_with_results_time_and_tokens_and_sorted_by_them(client: TestClient) -> None:
    for run in (1, 2):
        shown(client, f"/runs/{run}")
    page = client.get("/runs").text
    for run in (1, 2):
        values = client.get(f"/runs/{run}/metrics.json").json()["metrics"]
        first = next(one for one in values if (one["metric"], one["subset"]) == ("acc_p", "all"))
        row = page.partition(f'href="/runs/{run}"')[2].partition("</tr>")[0]
        assert f"{first['value']:.1f}" in row
        assert f"[{first['low']:.1f}, {first['high']:.1f}]" in row
        assert re.search(r">(\d+|&lt; 1) s</td>", row)
    ordered = client.get("/runs", params={"order": "result"}).text
    results = [float(one) for one in re.findall(r'acc_p</span> <span class="num">([\d.]+)', ordered)]
    assert len(results) == 2
    assert results == sorted(results, reverse=True)
    assert client.get("/runs", params={"order": "luck"}).status_code == 400


def test_two_runs_are_compared_and_lead_to_the_groups_behind_each_number(client: TestClient) -> None:
    page = shown(client, "/compare?run=1&run=2")
    counts = [int(count) for count in re.findall(r'<b class="num">(\d+)</b>', page)]
    assert sum(counts) == 30
    gained = counts[2]
    assert re.findall(r'<p class="lede">([^<]*)', page)
    page = shown(client, "/compare?run=1&run=2&show=gained")
    assert f"{min(gained, 10)} of {gained}" in page
    assert page.count('<article class="pairrow') == min(gained, 10)
    swapped = shown(client, "/compare?run=2&run=1")
    assert [int(count) for count in re.findall(r'<b class="num">(\d+)</b>', swapped)][1] == gained


@pytest.mark.parametrize("query", ["", "?run=1"])
def test_without_two_runs_the_page_asks_for_them(client: TestClient, query: str) -> None:
    assert "Select two or more runs" in shown(client, f"/compare{query}")


def test_a_run_is_not_compared_with_itself(client: TestClient) -> None:
    answer = client.get("/compare?run=1&run=1")
    assert answer.status_code == 400
    assert "a run is not compared with itself" in answer.text
    assert '<form class="sec" action="/compare">' in answer.text


def test_runs_that_are_selected_in_a_list_are_compared_in_the_order_of_their_numbers(
    client: TestClient,
) -> None:
    page = shown(client, "/compare?run=2&run=1&order=number")
    assert re.findall(r'<dt>[AB]</dt><dd><a href="/runs/(\d)"', page) == ["1", "2"]


def test_the_metric_that_is_shown_by_label_can_be_chosen(client: TestClient) -> None:
    page = shown(client, "/compare?run=1&run=2")
    assert "acc_p by category, B minus A" in page
    page = shown(client, re.findall(r'<a href="(/compare[^"]*metric=acc_q)"', page)[0].replace("&amp;", "&"))
    assert "acc_q by category, B minus A" in page
    assert "metric=acc_q" in re.findall(r'href="([^"]*show=gained[^"]*)"', page)[0]


@pytest.mark.slow
def test_runs_of_different_benchmarks_are_refused_before_anything_is_read(
    codis: Path, tmp_path: Path
) -> None:
    file = str(tmp_path / "two.db")
    mmr3 = generate_mmr3(tmp_path / "mmr3", groups=2)
    words = ["--model", "baseline/chance", "--store", file, "--quiet", "--limit", "2"]
    assert main(["run", "codis", "--data", str(codis), *words]) == 0
    assert main(["run", "mmr3:rephrasing", "--data", str(mmr3), "--set", "embedder=none", *words]) == 0
    with closing(Store.open(file, create=False)) as store:
        client = TestClient(AccessControl(create_app(store), ACCESS), base_url=HOST, follow_redirects=False)
        client.get("/", params={"token": TOKEN})
        answer = client.get("/compare?run=1&run=2")
    assert answer.status_code == 400
    assert "run 1 is of codis, run 2 of mmr3" in answer.text
    assert re.findall(r'name="run" value="(\d)"', answer.text) == ["1"]


@pytest.mark.parametrize("query", ["?run=1&run=x", "?run=1&run=2&show=everything"])
def test_a_wrong_comparison_says_what_is_wrong(client: TestClient, query: str) -> None:
    shown(client, "/compare?run=1&run=2")
    assert client.get(f"/compare{query}").status_code == 400


@pytest.mark.slow
def test_the_page_of_judges_lists_the_responses_on_which_they_differ(disputed: Store) -> None:
    app = AccessControl(create_app(disputed), ACCESS)
    client = TestClient(app, base_url=HOST, follow_redirects=False)
    client.get("/", params={"token": TOKEN})
    page = shown(client, "/judges?run=2")
    assert "<h3>ROC curves</h3>" in page
    assert "majority of the humans" in page
    assert len(re.findall(r"anna</span></li>", page)) == 4
    assert "There is no ROC curve" not in page
    page = shown(client, "/judges?run=1")
    assert "This run has one judge" in page
    assert "<h2>" not in page.partition("<main")[2]


def test_a_run_that_does_not_exist_is_not_found_and_the_page_leads_to_the_runs(client: TestClient) -> None:
    shown(client, "/compare?run=1&run=2")
    for address in ("/runs/99/groups", "/compare?run=1&run=99"):
        answer = client.get(address)
        assert answer.status_code == 404
        assert 'href="/runs"' in answer.text


@pytest.mark.parametrize("page", ["/runs/1/groups", "/runs/1/group?id=000", "/runs/1/answers.jsonl"])
@pytest.mark.parametrize("query", ["category=Nope", "consistency=foo", "order=foo", "sort=foo"])
def test_what_a_list_of_groups_cannot_filter_by_is_refused(client: TestClient, page: str, query: str) -> None:
    shown(client, "/runs/1/groups")
    answer = client.get(f"{page}{'&' if '?' in page else '?'}{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.text


def test_a_card_shows_the_responses_and_the_page_of_an_inconsistent_group_names_the_pair(
    client: TestClient,
) -> None:
    page = shown(client, "/runs/1/groups?consistency=inconsistent")
    assert page.count('<ul class="replies"') == page.count('<article class="card"') > 0
    number = re.findall(r'href="/runs/1/group\?id=([^"&]+)&', page)[0]
    group = client.get(f"/runs/1/group?id={number}").text
    assert re.search(r"<p>\S+ and \S+ have the same answer, but different references</p>", group)
    assert group.count("looked for:") == group.count('class="verdict wrong"')


def test_the_reasoning_of_a_response_is_folded_below_it(tmp_path: Path) -> None:
    groups, file = tmp_path / "groups.jsonl", tmp_path / "answers.jsonl"
    record = {"group": "g", "variant": "v"}
    groups.write_text(json.dumps({**record, "prompt": "Which?", "options": ["a", "b"], "references": ["B"]}))
    file.write_text(json.dumps({**record, "response": "<think>Is it A & <b>?</think>B"}))
    words = ["run", f"groups:{groups}", "--model", f"replay/{file}", "--set", "embedder=none", "--quiet"]
    assert main([*words, "--store", str(tmp_path / "store.db")]) == 0
    with closing(Store.open(str(tmp_path / "store.db"), create=False)) as store:
        browser = TestClient(AccessControl(create_app(store), ACCESS), base_url=HOST, follow_redirects=False)
        assert browser.get("/", params={"token": TOKEN}).status_code == 200
        shown(browser, "/runs/1/groups")
        page = browser.get("/runs/1/group?id=g").text
    folded = re.search(r"<details><summary>Reasoning</summary><pre>(.*?)</pre></details>", page, re.DOTALL)
    assert folded is not None
    assert folded[1].strip() == "Is it A &amp; &lt;b&gt;?"


def test_a_group_says_which_rule_gave_each_verdict(client: TestClient) -> None:
    first = re.findall(r'<a href="(/runs/1/group\?id=[^"&]+)"', shown(client, "/runs/1/groups"))
    page = shown(client, first[0])
    assert page.count('<p class="sub">rule: ') == 2
    assert "read: " in page


def test_own_labels_have_a_section_whose_values_open_their_groups(tmp_path: Path) -> None:
    lines = [
        {
            "group": f"g{number}",
            "variant": variant,
            "prompt": f"Question {number}, {variant}?",
            "options": ["yes", "no"],
            "references": ["yes"],
            "labels": {"topic of mine": "A & B" if number < 2 else "rest"},
        }
        for number in range(5)
        for variant in ("asked", "reworded")
    ]
    file, path = tmp_path / "mine.jsonl", tmp_path / "sightline.db"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["run", f"groups:{file}", "--model", "baseline/chance", "--quiet", "--store", str(path)]
    assert main(words) == 0
    with closing(Store.open(str(path), create=False)) as store:
        client = TestClient(AccessControl(create_app(store), ACCESS), base_url=HOST)
        client.get("/", params={"token": TOKEN})
        page = shown(client, "/runs/1")
        for metric in ("acc", "con"):
            assert f"{metric} by topic of mine" in page
        links = re.findall(r'<a href="(/runs/1/groups\?label[^"]+)">([^<]+)</a>', page)
        assert [name for _, name in links] == ["A &amp; B", "rest"] * 2
        for (address, _), groups in zip(links, (2, 3, 2, 3), strict=True):
            assert f"{groups} of 5 groups" in shown(client, unescape(address))


def test_a_comparison_of_several_runs_has_a_row_for_each_with_p_values_corrected_together(
    codis: Path, tmp_path: Path
) -> None:
    file = str(tmp_path / "store.db")
    words = ["run", "codis", "--model", "baseline/chance", "--data", str(codis), "--store", file, "--quiet"]
    for seed in range(3):
        assert main([*words, "--seed", str(seed)]) == 0
    with closing(Store.open(file, create=False)) as store:
        browser = TestClient(AccessControl(create_app(store), ACCESS), base_url=HOST, follow_redirects=False)
        assert browser.get("/", params={"token": TOKEN}).status_code == 200
        for run in (1, 2, 3):
            shown(browser, f"/runs/{run}")
        # The page waits for all comparisons, and continues by itself.
        page = shown(browser, "/compare?run=1&run=2&run=3")
    table = page.partition("acc_p of each run, minus A</h2>")[2].partition("</tbody>")[0]
    rows = re.findall(r"with=(\d)&.*?>([^<>]*)</td></tr>", table)
    (one, other) = compare_words(["1"], [["2"], ["3"]], file)
    expected = [f"{tested.tests['acc_p', 'all'].holm:.3f}" for tested in (one, other)]
    assert rows == list(zip(("2", "3"), expected, strict=True))
