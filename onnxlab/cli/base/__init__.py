"""What the verbs of the command line share: entries, inputs, outputs, answers, exit codes.

Files:
    answers      Answers of the command line: lines, or one JSON object with a schema, or the bytes of a file on
                 standard output.
    deadline     The end of a command that takes too long.
    entries      Verbs of the command line: each with the options that every verb has.
    environment  The environment: versions, what is optional, the machine; each with what would mend it.
    exits        Exit codes: one for each way in which a command ends.
    inputs       What commands read: models out of files or standard input, arrays, sizes and lists of names.
    outputs      What commands write: models and what is made of them, whole or not at all, and over nothing but their
                 own kind.
    progress     What a command is doing, on standard error, where a terminal is there and it takes longer than a
                 second.
"""
