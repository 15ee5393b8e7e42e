"""The common parts of the verbs of the command line: entries, inputs, outputs, answers, exit codes.

Files:
    answers      Answers of the command line: lines, or one JSON object with a schema, or the bytes of a file on
                 standard output.
    deadline     The end of a command that takes too long.
    entries      Verbs of the command line: each with the options that every verb has.
    environment  The environment: versions, what is optional, the machine; each with what would mend it.
    exits        Exit codes: one for each way in which a command ends.
    inputs       Inputs of commands: models out of files or standard input, arrays, sizes and lists of names.
    outputs      Outputs of commands: models and reports, whole or not at all, and over nothing but their own kind.
    progress     The progress of a command on standard error, where a terminal is there and it takes longer than a
                 second.
    streams      The standard streams of a command: all three open, able to print any text, and told when their reader
                 is gone.
"""
