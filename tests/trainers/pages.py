"""What pages in HTML consist of."""

import html.parser


class Elements(html.parser.HTMLParser):
    """All elements with their attributes, the text outside of styles, and whether tags are balanced."""

    VOID = frozenset({"meta", "img", "br", "wbr", "line", "polyline"})

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += "" if "style" in self.open else data
