"""Actions of a person in the widget, counted: a click, a drag, a chord of keys, a typed text, a dropped file."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Locator

from tests.browser.support.lab import Widget


class Actions:
    """The actions of one job.

    Attributes:
        taken: what was done, in words.
    """

    def __init__(self, widget: Widget) -> None:
        self.widget = widget
        self.taken: list[str] = []

    def __len__(self) -> int:
        return len(self.taken)

    def click(self, target: str | Locator, words: str = "") -> None:
        """Click on an element, by its test id or as it is."""
        locator = self.widget.get(target).first if isinstance(target, str) else target
        locator.click()
        self.taken.append(f"click {words or target}")

    def click_at(self, x: float, y: float, words: str, button: Any = "left") -> None:
        """Click at a point of the page."""
        self.widget.page.mouse.click(x, y, button=button)
        self.taken.append(f"{button} click on {words}")

    def drag(self, start: tuple[float, float], end: tuple[float, float], words: str) -> None:
        """Press, move and release."""
        mouse = self.widget.page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=4)
        mouse.move(*end, steps=4)
        self.widget.page.wait_for_timeout(400)  # a person looks before letting go
        mouse.up()
        self.taken.append(f"drag {words}")

    def key(self, chord: str) -> None:
        """Press a key with its modifiers."""
        self.widget.page.keyboard.press(chord)
        self.taken.append(f"key {chord}")

    def type(self, text: str) -> None:
        """Type a text."""
        self.widget.page.keyboard.type(text)
        self.taken.append(f"type {text!r}")

    def choose(self, select: str, option: str) -> None:
        """Choose an option of a list."""
        self.widget.get(select).select_option(option)
        self.taken.append(f"choose {option!r}")

    def choose_file(self, field: str, path: Path) -> None:
        """Choose a file in a field for one."""
        self.widget.get(field).set_input_files(files=[str(path)])
        self.taken.append(f"choose the file {path.name}")

    def box(self, name: str) -> tuple[float, float]:
        """The middle of the box of a group, by its name, or of a node, by its own."""
        point = self.widget.evaluate(
            """(h, name) => {
                const store = h.store;
                const ids = new Map([...store.groups.values()].map((group) => [`group ${group.id}`, group.name]));
                for (const node of store.nodes.values()) ids.set(`node ${node.id}`, node.name);
                const box = h.view.debug().boxes.find(({ kind, id }) => ids.get(`${kind} ${id}`) === name);
                return box ? [box.x + box.w / 2, box.y + box.h / 2] : null;
            }""",
            name,
        )
        assert point, f"no box of {name!r} shows"
        return point[0], point[1]

    def label(self, value: str, kind: str = "label") -> tuple[float, float]:
        """A point on what the picture writes at a value, or in the middle of the box of an input or output."""
        point = self.widget.evaluate(
            """(h, [name, kind]) => {
                const id = [...h.store.values.values()].find((value) => value.name === name)?.id;
                const { boxes, labels } = h.view.debug();
                const label = labels.find(({ value }) => value === id);
                const box = boxes.find((each) => each.kind === kind && each.id === id);
                if (kind === 'label') return label ? [label.x + 8, label.y] : null;
                return box ? [box.x + box.w / 2, box.y + box.h / 2] : null;
            }""",
            [value, kind],
        )
        assert point, f"no {kind} of {value!r} shows"
        return point[0], point[1]
