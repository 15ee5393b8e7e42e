"""Records of edits for the history: the description of an edit, and its call as Python.

Files:
    edit_spec     What one edit is: its function, its subject, its parameters, its label, and the statement that makes
                  it in Python.
    python_calls  Statements of Python that make an edit: a call of a method, an attribute that is set, an entry of a
                  mapping.
"""
