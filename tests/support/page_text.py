"""What a page says: its tags, its text, and the cells of its tables."""

import html.parser
import re


class Parsed(html.parser.HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def rows(text, label):
    """The cells of each row of the table in the region of that label."""
    region = re.search(rf'aria-label="{label}">(.*?)</table>', text, re.DOTALL)[1]
    lines = re.findall(r"<tr[^>]*>(.*?)</tr>", region, re.DOTALL)
    return [[Parsed(cell).text for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)] for line in lines]
