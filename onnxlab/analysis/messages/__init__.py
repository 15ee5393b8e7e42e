"""The commonest error messages of onnx, onnxruntime and torch: what they mean, and what to do.

Files:
    explaining  The messages in a pasted text: what they mean, the node that they are about, and what to do.
    message     An error message of another tool: how it is told, what it means and how that is mended.
    places      The places in a model that a message refers to: the node, its inputs, and the diagnostics of onnxlab
                on the same.
    table       The table of messages: those that users of onnx, onnxruntime and torch meet most.
"""
