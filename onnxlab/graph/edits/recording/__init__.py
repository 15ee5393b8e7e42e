"""Records of edits for the history: the description of an edit, and its call as Python.

Files:
    edit_spec     The description of an edit: function, subject, parameters, label, and its statement in Python.
    python_calls  Statements of Python that make an edit: a call of a method, an attribute that is set, an entry of a
                  mapping.
"""
