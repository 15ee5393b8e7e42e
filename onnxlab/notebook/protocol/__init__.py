"""Messages between kernel and page, how they are sent, and files that arrive from the page.

Files:
    commands        Requests of a page that change the model, its history or its file, and their answers.
    events          Events that the kernel sends by itself, numbered, so that a page that missed one asks for a
                    snapshot.
    messages        Requests of a page, looked at, and what is sent to it, written.
    methods         Everything that a page may ask, by the name of the method.
    outbox          Sends replies and numbered events, one at a time, and not more than a front end takes.
    pairs           Requests of a page with two models side by side, and their answers.
    questions       Requests of a page about the model as it is, and their answers.
    records         The parts of a picture of the model: nodes, values, groups, scopes, problems, and the state of its
                    history.
    rewriting       Requests of a page about rewriting: rules that apply, nodes that go and come, patterns; and
                    applying rules.
    runs            Runs that a page asks for, and their results: numbers, tensors, colors.
    schema          Words of which the schema of the protocol is made: aliases, what a parameter may be, what a method
                    answers.
    typed_elements  Elements of tensors as they are typed by hand or sent by a page, in a type exactly or not at all.
    uploads         Files that were chosen in the browser: they arrive as bytes, piece by piece, and never become
                    paths.
    watching        Watches of a model as the page lists, adds and removes them.
"""
