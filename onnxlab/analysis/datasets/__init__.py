"""Whole data sets: statistics of values and errors between models over many samples, on one machine or a cluster.

Files:
    checkpoint  Checkpoints: what was counted so far, in a file, so that a job goes on where it was interrupted.
    cluster     Chunks counted by the workers of a Dask distributed cluster. Nothing of Dask is imported here: the
                client brings it.
    evaluation  Errors of one model against another over a data set, as a table.
    histogram   Quantiles and ranges from histograms of signed powers of two.
    jobs        Jobs over samples: what is run for each, and what is counted. A job is sent to workers, a part comes
                back.
    metrics     Metrics of the outputs of two models for a sample: some by name, and functions of the caller.
    part        Counts of some samples in a row: tallies by name, and samples that could not be used.
    passes      One pass over a data set: chunk by chunk, in this process or by a Dask cluster, always merged in the
                same order.
    samples     Samples of a data set, whatever holds them: an iterable, a sequence, a folder, a Dask bag or array.
    sessions    Models that run samples: sent to a process once, and kept there.
    table       Statistics of values over a data set, as a table.
    tally       Running statistics of many values over many samples: one pass, constant memory, and two of them can be
                merged.
    varying     The choice of values that are worth counting over samples, and their channels.
"""

CHUNK = 32
"""Samples that are counted together and then merged; a task of a cluster."""
