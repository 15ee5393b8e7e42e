"""Passes: what is done to a run's nodes before they are partitioned, and to its steps before they are a program.

Each pass has a file of its own in this folder, from which it is registered.

Files:
    nchwc_to_nchw  Networks with channels in blocks (NCHWc), as ONNX Runtime's optimizer saves them, written without
                   blocks for a plan.
    ordering       The order of a run that keeps nothing: the file's, or one in which less is alive at once where that
                   saves much.
    pass_list      The passes of this folder: a class derived from `NodePass` or `StepPass` in a file of its own is
                   one.
"""
