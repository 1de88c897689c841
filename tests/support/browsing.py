"""A page of ours in a real browser: what it draws, what it asks of the network, and what it complains about."""

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


def start(driver):
    """Chromium without a window. `driver` is the path of chromedriver, so that nothing is looked for in the network."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    browser.set_page_load_timeout(60)
    browser.set_script_timeout(60)  # seconds: a page that hangs is an error and not a wait
    return browser


class Page:
    """One file or address, opened at a width and in a theme, with nothing remembered from earlier pages."""

    def __init__(self, browser, path, *, width=1200, height=900, theme="light"):
        self.browser = browser
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        self.system(theme)
        self.complaints()
        browser.get(path if isinstance(path, str) else path.as_uri())
        if self.run("const held = localStorage.length; localStorage.clear(); return held"):
            browser.refresh()

    def command(self, name, **given):
        """A command of Chromium's own."""
        return self.browser.execute_cdp_cmd(name, given)

    def system(self, theme):
        """Let the system ask for light or dark."""
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def run(self, script, *arguments):
        """What the script returns."""
        return self.browser.execute_script(script, *arguments)

    def all(self, selector):
        """The elements."""
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        """The element."""
        (found,) = self.all(selector)
        return found

    def click(self, element):
        """Click on it, in the middle of the window, where nothing lies above it."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def tab(self):
        """Press Tab."""
        for what in ("rawKeyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=what, key="Tab", code="Tab", windowsVirtualKeyCode=9)

    def until(self, script, *arguments):
        """Wait until the script returns something true."""
        return WebDriverWait(self.browser, 20, poll_frequency=0.05).until(lambda _: self.run(script, *arguments))

    def complaints(self):
        """What the console has said since the last call."""
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def plots(self, part="main"):
        """The plots in a part of the page, all drawn."""
        found = self.all(f"{part} .plot")
        for plot in found:
            self.run("arguments[0].scrollIntoView({block: 'center'})", plot)
            self.until("return Boolean(arguments[0].querySelector('.main-svg'))", plot)
        return found

    def lines(self, plot):
        """(dash, colour) of each visible line of a plot, as it is drawn."""
        script = """
            return [...arguments[0].querySelectorAll(".scatterlayer .js-line")].map(({style}) =>
                [style.strokeWidth, style.strokeDasharray, style.stroke])
        """
        return [(dash, color) for width, dash, color in self.run(script, plot) if width != "0px"]
