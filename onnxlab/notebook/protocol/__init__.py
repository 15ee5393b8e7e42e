"""Messages between kernel and page, how they are sent, and files that arrive from the page.

Files:
    answers   What the kernel answers: one record for each method.
    events    What the kernel tells a page without being asked, numbered, so that a page that missed one asks for a
              snapshot.
    messages  Requests of a page, looked at, and what is sent to it, written.
    methods   Everything that a page may ask: each method with its parameters, its answer, and what is known of it.
    outbox    Sends replies and numbered events, one at a time, and not more than a front end takes.
    records   What a picture of the model is made of: nodes, values, groups, scopes, problems, and where its history
              stands.
    schema    Words of which the schema of the protocol is made: aliases, what a parameter may be, what a method
              answers.
    uploads   Files that were chosen in the browser: they arrive as bytes, piece by piece, and never become paths.
"""
