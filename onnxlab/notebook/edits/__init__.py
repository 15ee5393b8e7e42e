"""Edits made by hand: each with its parameters, what it does, and its line of Python.

Files:
    edit_command    What a gesture is, what its parameters may be, and how the things of a model are written in
                    Python.
    edit_commands   What can be done to a model by hand: every gesture with what it takes, what it does, and its line
                    of Python.
    model_commands  Gestures that are done to the model as a whole, or to the graph or body that a view shows of it.
    node_commands   Gestures that are done to nodes.
    typed_tensors   Tensors as they are typed by hand: a type, a shape and numbers, or a few elements changed; each
                    with its Python.
    value_commands  Gestures that are done to a value.
"""
