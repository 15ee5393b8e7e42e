"""Edits that the page asks for: the table of edits with parameters as JSON has them.

Files:
    cut_preview    The effect of a cut of the model, before it is made.
    edit_requests  Edits that the page asks for: rows of the table of edits, with parameters as JSON has them.
    kinds          Kinds of an edit's parameters in a request of the page: what fits, in words, and its Python value.
    typed_tensors  Tensors as they are typed by hand: a type, a shape and numbers, or a few elements changed; each
                   with its Python.
"""
