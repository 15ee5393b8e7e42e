"""Elements of tensors as they are typed by hand or sent by a page, in a type exactly or not at all."""

from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.errors import EditError

Number = bool | int | float | str
_WORDS = {"true": True, "false": False}


def element(number: Number, dtype: "np.dtype[Any]") -> Any:
    """A typed element of a dtype: integers exactly, "nan" and "inf" as words, texts for strings.

    Raises:
        EditError: the number is no element of the dtype, or does not fit it.
    """
    if dtype.kind == "O":
        return str(number)
    try:
        if isinstance(number, str):
            number = _WORDS.get(number.strip().lower(), number.strip())
        if dtype.kind == "b":
            return bool(float(number))
        if dtype.kind in "iu" or dtypes.from_numpy(dtype) in (dtypes.INT4, dtypes.UINT4, dtypes.INT2, dtypes.UINT2):
            whole = int(number)
            if whole != (number if not isinstance(number, str) else int(number)) or int(dtype.type(whole)) != whole:
                raise ValueError(f"{dtype} cannot hold it")
            return dtype.type(whole)
        return dtype.type(complex(number) if dtype.kind == "c" else float(number))
    except (ValueError, OverflowError, TypeError) as error:
        shown = dtypes.name(dtypes.from_numpy(dtype))
        raise EditError(f"{number!r} is no {shown}: {error}. Nothing was changed.") from None
