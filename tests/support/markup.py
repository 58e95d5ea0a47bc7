"""Pages taken apart: what a browser would make of them."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "link"}
# What may act: elements that run, load or send something, and attributes that do.
ACTING = {"script", "iframe", "object", "embed", "form", "link", "base", "applet"}


class Elements(HTMLParser):
    """Elements and texts of a piece of HTML, which have to be closed as they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.bold: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, name, attrs) -> None:
        self.elements.append((name, {key: value or "" for key, value in attrs}))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name) -> None:
        assert self.open.pop() == name

    def handle_data(self, data) -> None:
        if self.open and self.open[-1] == "style":
            return
        self.words.append(data)
        if "b" in self.open:
            self.bold.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def acting(self) -> list[str]:
        """What would run, load or send something."""
        found = [name for name, _ in self.elements if name in ACTING]
        for name, attributes in self.elements:
            found += [key for key in attributes if key.startswith("on") or key == "style"]
            links = [attributes.get("href", ""), attributes.get("src", "")]
            found += [f"{name} {link}" for link in links if link and not link.startswith("#")]
        return found
