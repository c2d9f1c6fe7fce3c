"""Law: search, the report's filter and the gallery work in a browser, on a phone, and in light and dark mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

PHONE, DESK = {"width": 390, "height": 800}, {"width": 1280, "height": 900}
#: A page of each kind.
KINDS = (
    "index",
    "start",
    "tutorial",
    "which-function",
    "cheat-sheet",
    "sharp-edges",
    "how-to",
    "how-to-train",
    "explanation",
    "how-it-works",
    "views-and-versions",
    "subgradients",
    "complex",
    "reference/index",
    "reference/elementwise-functions",
    "reference/xpgrad.sort",
    "reference/xpgrad.Tensor",
    "reference/xpgrad.autograd.graph.Node",
    "reference/xpgrad.backend.Backend",
    "gallery/index",
    "gallery/01_ode_fit",
    "checked",
    "conformance",
    "contracts",
    "conformance/report",
    "performance",
    "coming-from-pytorch",
    "auditing",
    "audit-report",
    "consumers",
    "about/changelog",
)

# The contrast of WCAG 2.2, for texts of a page on a background of one colour.
CONTRASTS = """() => {
  const light = c => { const v = c / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const numbers = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const style = getComputedStyle(node), colour = numbers(style.backgroundColor);
      if (style.backgroundImage !== 'none') return null;
      if (colour.length < 4 || colour[3] === 1) return colour;
      if (colour[3] !== 0) return null;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const node of document.querySelectorAll('article :is(p, li, a, td, th, dt, h1, h2)')) {
    if (!node.checkVisibility() || !node.textContent.trim()) continue;
    const style = getComputedStyle(node), back = behind(node);
    if (!back) continue;
    const [a, b] = [luminance(numbers(style.color)), luminance(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) poor.push(`${node.tagName} ${node.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return poor;
}"""


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with browser.new_context(viewport=DESK, base_url=address) as context:
        yield context.new_page()


def test_search_finds_a_function_by_its_name(page: Any) -> None:
    page.goto("index.html")
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input[type=search], .search-button__search-container input").first.fill("hessian_vector_product")
    page.keyboard.press("Enter")
    found = page.locator("#search-results li a").first
    found.wait_for()
    assert "hessian_vector_product" in found.inner_text()
    found.click()
    page.wait_for_url("**/xpgrad.func.hessian_vector_product.html*")


def test_search_finds_words_of_the_pages(page: Any) -> None:
    page.goto("search.html?q=checkpoint")
    page.locator("#search-results li a[href*='how-to-memory']").first.wait_for()  # results come one by one


def test_the_reports_filter_shows_what_was_typed(page: Any) -> None:
    page.goto("checked.html")
    frame = page.frame_locator("iframe.report")
    frame.locator("#text").fill("bwd-01 must")
    shown = frame.locator("details.contract:not(.hidden)")
    assert [entry.get_attribute("id") for entry in shown.all()] == ["BWD-01"]
    frame.locator("#text").fill("no rule says this")
    assert shown.count() == 0
    frame.locator("#text").fill("")
    assert shown.count() == 498
    frame.locator("#only").check()
    assert 0 < shown.count() < 498


def test_a_reference_page_leads_to_its_contract(page: Any) -> None:
    page.goto("reference/xpgrad.autograd.backward.html")
    page.locator(".facts a", has_text="BWD-02").click()
    page.wait_for_url("**/conformance/report.html#BWD-02")
    assert page.locator("#BWD-02").evaluate("node => node.getBoundingClientRect().top < innerHeight")


def test_the_gallery_shows_its_pictures(page: Any) -> None:
    page.goto("gallery/index.html")
    thumbnails = page.locator(".sphx-glr-thumbcontainer")
    assert thumbnails.count() == 20
    for picture in thumbnails.locator("img").all():
        picture.scroll_into_view_if_needed()
        assert picture.evaluate("async node => { await node.decode(); return node.naturalWidth; }") > 200
        assert picture.get_attribute("alt") is not None
    thumbnails.first.locator("a").first.click()
    page.wait_for_url("**/gallery/01_*.html*")
    assert page.locator("article img").first.evaluate("node => node.naturalWidth") > 400


def test_an_example_is_copied_without_its_prompts(page: Any, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    page.goto("reference/xpgrad.add.html")
    page.locator("div.highlight").first.hover()
    page.locator("button.copybtn").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied
    assert ">>>" not in copied


def test_the_page_of_an_audit_opens_and_points_to_lines(page: Any) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto("audit-report.html")
    assert page.locator("[data-kind]").count() > 0
    assert page.locator("svg").count() > 0
    assert errors == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_whole_and_legible(browser: Any, address: str, kind: str, scheme: str) -> None:
    """Law: on a phone nothing is wider than the screen, every text has contrast, and no script fails."""
    with browser.new_context(viewport=PHONE, base_url=address, color_scheme=scheme) as context:
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        assert page.goto(f"{kind}.html").ok
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert page.evaluate(CONTRASTS) == []
        assert errors == []


def test_light_and_dark_are_two(browser: Any, address: str) -> None:
    backs = []
    for scheme in ("light", "dark"):
        with browser.new_context(viewport=DESK, base_url=address, color_scheme=scheme) as context:
            page = context.new_page()
            page.goto("index.html")
            backs.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert backs[0] != backs[1]


def test_the_menu_of_a_phone_opens(browser: Any, address: str) -> None:
    with browser.new_context(viewport=PHONE, base_url=address) as context:
        page = context.new_page()
        page.goto("index.html")
        page.locator("button.primary-toggle").click()
        page.locator("dialog[open] a", has_text="Gallery").first.wait_for(state="visible")
