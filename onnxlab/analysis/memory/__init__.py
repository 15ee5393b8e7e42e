"""The memory of a run over its schedule: by facts alone, nothing is run.

Files:
    buffers   Values that share a buffer: views of others, and results that are written over an input that is needed
              no more.
    drawing   A curve of bytes as text and as SVG.
    estimate  The memory that a run is going to take, told before it.
    timeline  The memory of a run, node by node: bytes alive over the schedule, the peak, and what is alive there.
"""
