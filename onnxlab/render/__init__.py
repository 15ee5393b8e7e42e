"""Pictures of a model that need no browser: text, SVG and HTML. Knows nothing of IPython.

Files:
    categories   Families of operators, for color: what people look for in a picture.
    constants    Nodes that read nothing but weights, and make what is read: their reader's own business, not drawn.
    drawn_scope  The graph that a picture is of: the main graph, or the function that it does nothing but call.
    layout       Places of a picture's boxes: by Graphviz's `dot` where it is installed, else in plain rows.
    picture      A model folded until it fits on a page: boxes, frames and edges as plain data, before any layout.
    png          A picture of a model as PNG: the SVG of `svg.py`, drawn by resvg with a font that comes along.
    repeats      Groups in a row that are alike and counted up, "h.1" to "h.11", as one box of a picture.
    svg          A model as a static SVG: what GitHub, nbconvert and `onnxlab svg` show.
    text         A model in words: what `print` and plain-text output show.
    words        The texts of boxes and frames of a picture, in as few characters as there is room for.
"""
