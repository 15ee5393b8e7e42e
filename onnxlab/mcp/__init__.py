"""The Model Context Protocol: open models as tools for a coding assistant, bounded, and read-only unless allowed.

Files:
    answers   Answers to an assistant: JSON of a bounded length, with the texts of a model cut, and marked as what
              they are.
    bridge    `onnxlab mcp`: a server of the Model Context Protocol on standard input and output, for a coding
              assistant.
    call      One call of an assistant: the models that it may ask about, what it may do, and its arguments, looked
              at.
    changing  Tools that change, run and save a model; each change is one step of its history, which the user can
              undo.
    client    The models that a bridge reaches: those that processes of this user serve, or those of files that it was
              given.
    looking   Tools that look: the models, their nodes, values and problems, a picture, differences.
    places    The places of served models: one record for each process that serves some, in a folder of the user's
              own.
    server    Models of this process, served to assistants of the same user: a socket, and threads that answer while
              cells run.
    tools     All tools, and how a call of one is answered.
    warming   The first use of what answers need: imports, and kernels, that a first call would wait for.
"""
