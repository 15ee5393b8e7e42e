"""Weights in files without a graph.

Files:
    files        Weights that lie in files without a graph: .safetensors, their shards by an index, and .npz.
    npz          NumPy's .npz archives as weights: arrays by name, read in place where the archive holds them as they
                 are.
    safetensors  The safetensors format: a header in JSON that says where each tensor lies, then their bytes.
"""
