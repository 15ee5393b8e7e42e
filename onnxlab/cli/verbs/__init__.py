"""The verbs of the command line, one family per file.

Files:
    check                `onnxlab check`: what is wrong with a model, in lines, JSON or SARIF.
    completion           `onnxlab completion`: completion of verbs, options and files for a shell, made by shtab.
    convert              `onnxlab convert`: a model in another format, and what that format does not hold.
    diff_compare         `onnxlab diff` and `compare`: what differs between two models, in their structure or in what
                         they compute.
    doctor               `onnxlab doctor` and `report`: whether all is well here, and what a report of a defect needs.
    edit_extract         `onnxlab extract`, `insert` and `edit`: a part of a model, two models put together, and a
                         model that is changed.
    explain              `onnxlab explain`: an error message of another tool, or why a value of a model has its shape.
    git                  `onnxlab git`: git shows models as lines, compares them by structure, and merges none by
                         guessing.
    info_shapes_text     `onnxlab info`, `shapes` and `text`: what is in a model.
    mcp                  `onnxlab mcp`: models as tools for a coding assistant.
    memory_cost          `onnxlab memory` and `cost`: what a run takes, by facts alone, for sizes that are given.
    rewrite              `onnxlab simplify`, `optimize`, `rewrite`, `fold`, `quantize`, `suggest`: a model rewritten,
                         or what that gains.
    run_profile          `onnxlab run`, `profile` and `hunt`: a run of a model, its times, and values that went wrong
                         in it.
    sarif                Problems of a model as SARIF 2.1.0, the format in which code hosts and editors take what
                         checkers find.
    show                 `onnxlab show`: the widget, in JupyterLab on a scratch notebook.
    statistics_evaluate  `onnxlab statistics` and `evaluate`: values of a model, and errors of another one, over a
                         folder of samples.
    svg                  `onnxlab svg`: a picture or a page of a model.
    warm                 `onnxlab warm`: the kernels of the numba provider, compiled once per machine.
"""
