"""The properties that Glow's dialect keeps in a value's doc string, as a live mapping."""

from collections.abc import Callable, Iterator, MutableMapping

from onnxlab.errors import EditError, MissingKeyError
from onnxlab.graph.protos import glow_dialect


class GlowProperties(MutableMapping[str, str]):
    """The properties in the doc string of a value, in order; writing one is an edit that prints the doc string anew.

    A doc string of another form has no properties and is never changed: setting a property is refused there.
    """

    def __init__(self, read: Callable[[], str], write: Callable[[str], None]) -> None:
        self._read, self._write = read, write

    def _held(self) -> dict[str, str]:
        return glow_dialect.parse_doc(self._read()) or {}

    def __getitem__(self, key: str) -> str:
        held = self._held()
        if key not in held:
            raise MissingKeyError(f"there is no property {key!r}; there is {', '.join(map(repr, held)) or 'none'}")
        return held[key]

    def __setitem__(self, key: str, text: str) -> None:
        doc = self._read()
        if doc and glow_dialect.parse_doc(doc) is None:
            raise EditError(f"the doc string {doc!r:.80} is not of the form $key:value; set doc_string instead")
        self._print({**self._held(), key: text})

    def __delitem__(self, key: str) -> None:
        self[key]
        self._print({name: text for name, text in self._held().items() if name != key})

    def _print(self, properties: dict[str, str]) -> None:
        try:
            doc = glow_dialect.print_doc(properties)
        except (ValueError, TypeError) as error:
            raise EditError(str(error)) from None
        self._write(doc)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __len__(self) -> int:
        return len(self._held())

    def __repr__(self) -> str:
        return repr(self._held())
