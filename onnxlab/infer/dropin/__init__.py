"""The functions of onnx.shape_inference, with their signatures, results and exceptions.

Files:
    fact_writer      Facts written into the messages of a model: value_info for every value that a node makes, types
                     of graph outputs.
    functions        The functions of onnx.shape_inference, with their signatures, results and exceptions.
    onnx_exceptions  Exceptions of onnx.shape_inference: the problems that the drop-ins raise, and under which class.
"""
