"""The demonstrations of the site, each opened from its folder, without a server: it shows what its words speak of."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from docs import static_site
from docs.demonstrations import DEMONSTRATIONS

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_each_link_opens_what_it_says(browser: Browser, tmp_path: Path) -> None:
    static_site.main(tmp_path)
    page = browser.new_context(offline=True, viewport={"width": 1280, "height": 720}, reduced_motion="reduce").new_page()
    for one in DEMONSTRATIONS:
        page.goto((tmp_path / "demonstrations.html").as_uri())
        page.get_by_role("link", name=one.title).click()
        sentence = page.locator("[data-part=sentence]")
        expect(sentence).to_contain_text(f"Step {one.step} of")
        expect(sentence).to_contain_text(f"layer {one.layer} head {one.head}")
        expect(sentence.locator("code").filter(has_text=one.looks).first).to_be_visible()
        expect(sentence).to_contain_text(f"the model writes {one.writes}")
        expect(page.locator("[data-part=text]")).to_have_value(one.text)
        expect(page.locator("[data-part=model]")).to_contain_text(one.model)
        expect(page.get_by_role("button", name="Share")).to_be_visible()
        assert one.model in page.title()
        # Copied, the link opens the same.
        page.wait_for_function("(step) => new URLSearchParams(location.hash.slice(1)).get('step') === step", arg=str(one.step))
        page.get_by_role("link", name="Transformer Viz").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("See a Transformer think")
    page.context.close()
