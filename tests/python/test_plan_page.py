"""The page of a plan, opened in Debian's Chromium."""
import os

os.environ["KERAS_BACKEND"] = "tandem"

import pytest
from browser_support import browser  # noqa: F401 (a fixture)
from selenium.webdriver.common.by import By

import tandem as tf
from tandem import memory


@pytest.fixture(scope="module")
def plan():
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [tf.keras.Input((24, 24, 3)), *[layers.Conv2D(16, 3, padding="same", activation="relu") for _ in range(4)], layers.Flatten(), layers.Dense(10)]
    )
    model.compile("adam", "mse")
    peak = memory.plan(model, 64, gpu_memory="1GiB", curve_points=0, effort=0.01).peak_bytes
    return memory.plan(model, 64, gpu_memory=peak // 2, effort=0.01)


def test_the_page_is_drawn_and_asks_nobody(plan, browser, tmp_path):  # noqa: F811
    page = tmp_path / "plan.html"
    plan.save(page)
    browser.get(page.as_uri())
    assert [h.text for h in browser.find_elements(By.TAG_NAME, "h2")] == ["Memory over a step", "What more memory buys", "What goes where, and why"]
    assert "It fits" in browser.find_element(By.CSS_SELECTOR, ".card").text
    drawings = browser.find_elements(By.CSS_SELECTOR, "svg.drawing")
    assert len(drawings) == 3
    for drawing in drawings:
        assert drawing.size["width"] > 500 and drawing.size["height"] > 50
    # The chart of memory has a line for the activations that stays below the one of the limit, which is drawn across.
    memory_chart = drawings[0]
    assert "limit" in memory_chart.text and "activations" in memory_chart.text
    assert browser.execute_script("return [...arguments[0].querySelectorAll('path.area')].every(p => p.getBBox().width > 100)", memory_chart)
    parts = browser.find_elements(By.CSS_SELECTOR, "section:nth-of-type(2) table tr")
    assert any(row.text.startswith("weights") for row in parts)
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    # Nothing sticks out at the side, on a wide window or a narrow one.
    for width in (1100, 500):
        browser.set_window_size(width, 1600)
        assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth + 1")
