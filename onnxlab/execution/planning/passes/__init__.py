"""Passes: what is done to a run's nodes before they are partitioned.

Each pass has a file of its own in this folder, from which it is registered.

Files:
    nchwc_to_nchw  Networks with channels in blocks (NCHWc), as ONNX Runtime's optimizer saves them, written without
                   blocks for a plan.
    pass_list      The passes of this folder: a class derived from `NodePass` in a file of its own is one.
    string_labels  Classifiers with labels that are strings: what chooses places in a table of these runs compiled.
    text_counts    Texts that are split into words, whose n-grams are counted: one node makes no array of words in
                   between.
"""
