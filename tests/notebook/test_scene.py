"""Names on the wire: shortened by what they share with the one before, and read back as the page does."""

from hypothesis import given
from hypothesis import strategies as st

from onnxlab.notebook.panels.scene import SHARED, front_coded


def decoded(coded: list[str]) -> list[str]:
    """The texts decoded as by store.ts: JavaScript counts in units of UTF-16."""
    names, before = [], b""
    for code in coded:
        before = before[: 2 * SHARED.index(code[0])] + code[1:].encode("utf-16-le", "surrogatepass")
        names.append(before.decode("utf-16-le", "surrogatepass"))
    return names


@given(st.lists(st.text(alphabet="ab/_?é😀", max_size=60)))
def test_names_come_back_from_what_is_sent_of_them(names: list[str]) -> None:
    assert decoded(front_coded(names)) == names


def test_what_a_name_shares_with_the_one_before_is_not_sent() -> None:
    assert front_coded(["layer.0/Conv", "layer.0/Relu", "layer.0/Relu", "x" * 99, "x" * 99]) == [
        "0layer.0/Conv", "8Relu", "<", "0" + "x" * 99, SHARED[-1] + "x" * (99 - len(SHARED) + 1),
    ]  # fmt: skip
