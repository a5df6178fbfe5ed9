"""The page of a profile, opened in Debian's Chromium: a fit on an emulated GPU."""
import pytest
from browser_support import browser  # noqa: F401 (a fixture)
from selenium.webdriver.common.by import By
from test_profile import FIT, TRAIN, run


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile_page")
    program = TRAIN + f"{FIT})\nfrom tandem import _profile\n_profile.start('fit.html')\n{FIT})\n_profile.stop()"
    run(program, folder, TANDEM_EMULATE_GPU="1x512MiB@2GB/s", TANDEM_DEVICE="gpu:0")
    return folder / "fit.html"


def test_the_page_is_drawn_and_asks_nobody(page, browser):  # noqa: F811
    browser.get(page.as_uri())
    headings = [h.text for h in browser.find_elements(By.TAG_NAME, "h2")]
    assert headings == ["Advice", "Timeline", "Over the whole time", "Memory", "Kernels by time", "Transfers", "Waiting", "How to read it"]
    drawings = browser.find_elements(By.CSS_SELECTOR, "svg.drawing")
    assert len(drawings) >= 3
    for drawing in drawings:
        assert drawing.size["width"] > 500 and drawing.size["height"] > 30
    rows = [row.text for row in browser.find_elements(By.TAG_NAME, "tr")]
    assert any("matmul" in row for row in rows) and any(row.startswith("the input pipeline keeps up") for row in rows)
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    # Nothing sticks out at the side, on a wide window or a narrow one.
    for width in (1100, 500):
        browser.set_window_size(width, 1600)
        assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth + 1")
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_the_wheel_goes_nearer_and_a_double_click_shows_all(page, browser):  # noqa: F811
    browser.get(page.as_uri())

    def after(event):
        return browser.execute_script(
            """
            const s = document.querySelector('svg.timeline'), r = s.getBoundingClientRect();
            const where = {clientX: r.left + r.width / 2, clientY: r.top + 20, bubbles: true, cancelable: true};
            if (arguments[0] === 'wheel') s.dispatchEvent(new WheelEvent('wheel', {...where, deltaY: -600}));
            if (arguments[0] === 'dblclick') s.dispatchEvent(new MouseEvent('dblclick', where));
            return s.querySelector('.ticks').textContent;
            """,
            event,
        )

    whole = after("dblclick")
    assert after("wheel") != whole
    assert after("dblclick") == whole
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
