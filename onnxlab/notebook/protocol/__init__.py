"""Messages between kernel and page, how they are sent, and files that arrive from the page.

Files:
    commands   What a page does to the model, its history and its file, and what it gets.
    events     What the kernel tells a page without being asked, numbered, so that a page that missed one asks for a
               snapshot.
    messages   Requests of a page, looked at, and what is sent to it, written.
    methods    Everything that a page may ask, by the name of the method.
    outbox     Sends replies and numbered events, one at a time, and not more than a front end takes.
    pairs      What a page asks where two models are side by side, and what it gets.
    questions  What a page asks about the model as it is, and what it gets.
    records    What a picture of the model is made of: nodes, values, groups, scopes, problems, and where its history
               stands.
    rewriting  What a page asks about rewriting: rules that apply, what goes and comes, patterns of nodes; and
               applying rules.
    runs       What a page runs, and what it gets of it: numbers, tensors, colors.
    schema     Words of which the schema of the protocol is made: aliases, what a parameter may be, what a method
               answers.
    uploads    Files that were chosen in the browser: they arrive as bytes, piece by piece, and never become paths.
    watching   Watches of a model as the page lists, adds and removes them.
"""
