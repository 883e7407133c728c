"""The report page in a real browser, without a screen: page_browser_test.py PROGRAM

Exits with 77, which ctest takes as "skipped", where Selenium or Chromium is missing.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import page_records

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError:
    print("skipped: python3-selenium is not installed")
    sys.exit(77)

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
PATIENCE_S = 120  # for a machine that is busy with something else

PIXELS = """
const canvas = arguments[0];
const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
const colours = new Set();
for (let i = 0; i < data.length; i += 4) {
  if (data[i + 3] > 0) colours.add((data[i] << 16) + (data[i + 1] << 8) + data[i + 2]);
}
return colours.size;
"""


def start_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    # As root and in containers there is neither a sandbox nor room in /dev/shm.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--window-size=1280,900", "--disable-background-networking"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=Service(DRIVER), options=options)
    browser.set_page_load_timeout(PATIENCE_S)
    browser.set_script_timeout(PATIENCE_S)
    return browser


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="strobe-page-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.browser = start_browser()
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "media": "", "features": [{"name": "prefers-color-scheme", "value": "light"}]})
        self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.browser.execute_cdp_cmd("Storage.clearDataForOrigin", {
            "origin": "file://", "storageTypes": "local_storage"})

    def tearDown(self):
        """Whatever a test did: the page complained of nothing and asked for nothing."""
        self.assertEqual(self.browser.get_log("browser"), [])
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                self.assertRegex(url, r"^(file|data|blob|about|chrome):")

    def open(self, records):
        """Makes a page of these records and shows it."""
        name = self.id().rsplit(".", 1)[-1]
        lines = os.path.join(self.folder.name, f"{name}.jsonl")
        page = os.path.join(self.folder.name, f"{name}.html")
        page_records.write(lines, records)
        # Twice the same file, which must make no difference.
        subprocess.run([sys.argv[1], "report", lines, lines, "--force", "-o", page], check=True,
                       stdout=subprocess.DEVNULL)
        self.browser.get(f"file://{page}")
        self.wait(lambda: self.find("#download").is_displayed())

    def wait(self, condition):
        WebDriverWait(self.browser, PATIENCE_S).until(lambda _: condition())

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def click(self, element):
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def column(self, section, title):
        """The texts of a column; rows that lack it because they did not run are left out."""
        return self.script("""
            const table = document.querySelector(`#${arguments[0]} table`);
            const titles = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
            return [...table.tBodies[0].rows].filter((row) => row.cells.length === titles.length)
                .map((row) => row.cells[titles.indexOf(arguments[1])].textContent);
            """, section, title)

    def head(self, section, title):
        return next(head for head in self.find_all(f"#{section} th")
                    if head.get_attribute("data-title") == title)

    def test_draws_every_plot(self):
        self.open(page_records.tour())
        canvases = self.find_all(".plot canvas")
        self.assertEqual(len(canvases), 6)
        for canvas in canvases:
            self.assertGreater(self.script(PIXELS, canvas), 10, canvas.get_attribute("aria-label"))
        self.assertEqual(self.find_all(".left-out"), [])

    def test_tells_the_result(self):
        self.open(page_records.tour())
        summary = self.find("#summary").text
        for part in ("failed, so not ranked: shortcut", "2.95× standard", "Did not run",
                     "needs 2.15 GB of workspace", "flash lacks int8 inputs"):
            self.assertIn(part, summary)
        self.assertIn("2 results failed", self.find("[role=alert]").text)
        self.assertIn("FAIL", self.find("#results tr.failed").text)
        self.assertNotIn("shortcut", self.column("summary", "Fastest"))
        self.assertEqual(len(self.find_all("#accuracy tbody tr")), 2)
        self.assertIn("≈ 1.845e+19", self.find("#accuracy").text)  # not a digit that is made up

    def test_sorts_numbers_as_numbers(self):
        self.open(page_records.tour())
        head = self.head("results", "Median (ms)")
        button = head.find_element(By.TAG_NAME, "button")
        self.click(button)
        times = [float(text) for text in self.column("results", "Median (ms)")]
        self.assertGreater(len(times), 50)
        self.assertEqual(times, sorted(times))
        self.assertEqual(head.get_attribute("aria-sort"), "ascending")
        last = self.find_all("#results tbody tr")[-1]
        self.assertIn("idle", last.get_attribute("class"), "what has no time comes last")
        # And back, by keyboard.
        button.send_keys(Keys.ENTER)
        times = [float(text) for text in self.column("results", "Median (ms)")]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertEqual(head.get_attribute("aria-sort"), "descending")
        self.assertEqual(self.head("results", "Pass").get_attribute("aria-sort"), "none")

    def test_filters_rows(self):
        self.open(page_records.tour())
        everything = len(self.find_all("#results tbody tr"))
        self.find("#results input").send_keys("SQ512 causal standard")
        self.wait(lambda: len(self.find_all("#results tbody tr")) == 2)
        self.assertEqual(set(self.column("results", "Implementation")), {"standard"})
        self.assertIn(f"2 of {everything} rows", self.find("#results .found").text)
        self.find("#results input").send_keys(Keys.CONTROL, "a", Keys.BACKSPACE)
        self.wait(lambda: len(self.find_all("#results tbody tr")) == everything)
        Select(self.find_all("#results select")[-1]).select_by_visible_text("did not run")
        self.assertEqual(len(self.find_all("#results tbody tr")), 5)
        self.find("#results input").send_keys("no such word")
        self.assertIn("No row passes", self.find("#results tbody").text)

    def test_legend_switches_a_series(self):
        self.open(page_records.tour())
        visible = """
            const canvas = document.querySelectorAll('#against-length canvas[role]')[1];
            return Chart.getChart(canvas).getVisibleDatasetCount();
            """
        before = self.script(visible)
        button = self.find("#against-length .legend button")
        self.click(button)
        self.assertEqual(self.script(visible), before - 1)
        self.assertEqual(button.get_attribute("aria-pressed"), "false")
        # It stays off when the plots are drawn anew in other colours.
        self.click(self.find("#theme"))
        self.assertEqual(self.script(visible), before - 1)
        self.click(self.find("#against-length .legend button"))
        self.assertEqual(self.script(visible), before)

    def test_choosers_change_the_lines(self):
        self.open(page_records.tour())
        labels = lambda: [button.text for button in self.find_all("#against-length .legend button")]
        self.assertIn("flash · causal", labels())
        mask = next(one for one in self.find_all("#against-length .chooser") if "Mask" in one.text)
        Select(mask.find_element(By.TAG_NAME, "select")).select_by_visible_text("full")
        self.assertEqual(labels(), ["flash", "standard", "oracle", "shortcut"])
        self.assertIn("standard at length 8192 (out-of-memory)",
                      self.find("#against-length .notes").text)

    def test_tooltip_tells_everything(self):
        self.open(page_records.tour())
        canvas = self.find("#against-length canvas[role]")
        self.script("arguments[0].scrollIntoView({block: 'center'})", canvas)
        point = self.script("""
            const chart = Chart.getChart(arguments[0]);
            const {x, y} = chart.getDatasetMeta(0).data.at(-1);
            const area = arguments[0].getBoundingClientRect();
            return [Math.round(area.left + x), Math.round(area.top + y)];
            """, canvas)
        self.browser.execute_cdp_cmd("Input.dispatchMouseEvent", {
            "type": "mouseMoved", "x": point[0], "y": point[1]})
        self.wait(lambda: self.find("#tooltip").is_displayed())
        for part in ("flash", "sq8192", "Median", "95 % interval", "TFLOP/s", "Of roofline",
                     "Memory", "Max error", "pass, 32 rows", "Xeon", "e836a84cadd2"):
            self.assertIn(part, self.find("#tooltip").text)

    def test_dark_and_light(self):
        self.open(page_records.tour())
        ground = lambda: self.script("return getComputedStyle(document.body).backgroundColor")
        self.assertEqual(ground(), "rgb(255, 255, 255)")
        self.click(self.find("#theme"))
        dark = ground()
        self.assertNotEqual(dark, "rgb(255, 255, 255)")
        self.browser.refresh()
        self.wait(lambda: self.find("#download").is_displayed())
        self.assertEqual(ground(), dark, "the choice is remembered")
        self.script("localStorage.clear()")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        self.browser.refresh()
        self.wait(lambda: self.find("#download").is_displayed())
        self.assertEqual(ground(), dark, "as the system has it")

    def test_works_without_storage(self):
        deny = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }});"
        refuse = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument",
                                              {"source": deny})
        self.open(page_records.tour())
        self.click(self.find("#theme"))
        self.assertEqual(self.script("return document.documentElement.dataset.theme"), "dark")
        self.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", refuse)

    def test_fits_a_phone(self):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True})
        for records in (page_records.tour(), page_records.hostile(), page_records.sweep()):
            self.open(records)
            self.assertEqual(self.script("return document.documentElement.scrollWidth"), 360)
            for canvas in self.find_all(".plot canvas"):
                self.assertLessEqual(canvas.size["width"], 360)

    def test_prints_white_and_without_controls(self):
        self.open(page_records.tour())
        self.click(self.find("#theme"))
        self.script("""
            window.addEventListener('beforeprint', () => {
              const canvases = [...document.querySelectorAll('.plot canvas')];
              const widths = canvases.map((canvas) => canvas.clientWidth);
              window.seen = [getComputedStyle(document.body).backgroundColor, Math.max(...widths)];
            });
            """)
        pdf = self.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        self.assertGreater(len(pdf["data"]), 20000)
        ground, width = self.script("return window.seen")
        self.assertEqual(ground, "rgb(255, 255, 255)")
        self.assertLessEqual(width, 500, "two plots fit side by side")
        self.assertEqual(self.script("return document.documentElement.dataset.theme"), "dark")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        for control in self.find_all(".controls"):
            self.assertFalse(control.is_displayed(), control.get_attribute("outerHTML"))

    def test_never_mixes_machines(self):
        self.open(page_records.two_machines())
        self.assertIn("2 different machines", self.find("#about .notice").text)
        self.assertEqual(len(set(self.column("results", "Machine"))), 2)
        self.assertEqual(len(self.find_all("#summary tbody tr")), 6)
        Select(self.find("#machine select")).select_by_visible_text("Neoverse-N1")
        self.assertEqual(len(self.find_all("#results tbody tr")), 6)
        self.assertEqual(len(self.find_all("#summary tbody tr")), 3)

    def test_warm_and_cold_caches_are_told_apart(self):
        fields = page_records.fields_of(1024)
        cold = page_records.timed("flash", fields, noise=-0.3)
        cold["sampling"] = {"cache": "cold"}
        self.open([page_records.timed("flash", fields), cold])
        self.assertEqual(self.column("summary", "Fastest"), ["flash · warm caches"])
        self.assertEqual(self.column("results", "Caches"), ["warm", "cold"])

    def test_modes_and_gpus_are_told_apart(self):
        fields = page_records.fields_of(1024)
        usual = {"tf32": False, "deterministic": False, "reference": "automatic"}

        def record(noise, device="cuda:0", **options):
            return {**page_records.timed("cuda:flash", fields, noise=noise), "device": device,
                    "options": {**usual, **options}}
        self.open([record(0.5), record(0.4, tf32=True), record(0.3, deterministic=True),
                   record(0.2, reference="fixed"), record(0.1, variant="128x64/2"),
                   record(0, device="cuda:1"), page_records.timed("flash", fields, noise=-0.5)])
        self.assertEqual(self.column("summary", "Fastest"), ["cuda:flash · cuda:0"])
        summary = self.find("#summary").text
        for other in ("tf32", "deterministic", "fixed reference", "128x64/2"):
            self.assertIn(f"cuda:flash · cuda:0 · {other}", summary)
        self.assertIn("cuda:flash · cuda:1", summary)
        self.assertNotIn("measured more than once", summary)
        self.assertEqual(self.column("results", "Variant"),
                         ["automatic"] * 4 + ["128x64/2", "automatic", ""])

    def test_one_problem_says_what_is_left_out(self):
        fields = page_records.fields_of(1024)
        self.open([page_records.timed(name, fields) for name in ("flash", "standard")])
        self.assertEqual(len(self.find_all("#results tbody tr")), 2)
        self.assertEqual(len(self.find_all(".plot canvas")), 2)
        self.assertEqual(len(self.find_all(".left-out")), 2)

    def test_checks_alone_make_a_page(self):
        self.open([page_records.verified("flash", page_records.fields_of(64), "pass", 1e-7)])
        self.assertFalse(self.find("#results").is_displayed())
        self.assertFalse(self.find("#plots").is_displayed())
        self.assertEqual(len(self.find_all("#accuracy tbody tr")), 1)

    def test_a_large_sweep_stays_legible(self):
        self.open(page_records.sweep())
        self.assertLess(self.script("return performance.now()"), 1000 * PATIENCE_S)
        for plot in ("against-length", "against-dim", "pareto", "roofline"):
            pressed = self.find_all(f"#{plot} .legend button[aria-pressed=true]")
            self.assertTrue(0 < len(pressed) <= 10, plot)
        self.assertEqual(len(self.find_all("#results tbody tr")), 200)
        self.click(self.find("#results .rest button"))
        self.assertEqual(len(self.find_all("#results tbody tr")), 720)

    def test_hostile_records_are_only_text(self):
        self.open(page_records.hostile())
        self.assertEqual(len(self.find_all("#results tbody tr")), len(page_records.hostile()))
        self.assertEqual(self.find_all("main img, main script"), [])
        self.assertEqual(self.column("results", "Problem")[:3], page_records.HOSTILE[:3])

    def test_hands_out_the_records(self):
        records = page_records.tour()
        self.open(records)
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {
            "behavior": "allow", "downloadPath": self.folder.name})
        self.click(self.find("#download"))
        path = os.path.join(self.folder.name, "records.jsonl")
        self.wait(lambda: os.path.exists(path))
        with open(path, encoding="utf-8") as file:
            self.assertEqual([json.loads(line) for line in file], records)


if __name__ == "__main__":
    if not BROWSER or not DRIVER:
        print("skipped: chromium and chromium-driver are not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
