"""Foundations of operators: the registry, helpers of kernels and of shape rules.

Files:
    derivatives         Reverse-mode rules: from the gradients of an operator's outputs to those of its inputs.
    estimates           Estimates of bytes and operations that operators of several families share: broadcasting,
                        products, convolutions.
    half_arithmetic     float16 and bfloat16 by float32 arithmetic on blocks: NumPy converts them one by one, several
                        times as slowly.
    image_layouts       Layouts of images in ONNX Runtime: channels last, and channels in blocks (NCHWc), each with a
                        domain of its own.
    kernel_helpers      Helpers of kernels: small floats, cache-sized blocks, axes, old broadcasting.
    known_elements      Arithmetic of known elements: numbers as ONNX computes them, `Expr`s where the result is exact
                        for every size.
    one_line_rules      Shape rules that fit on a line: the inputs' dims by letters, the outputs' dims by what they
                        are.
    prepared_constants  Constants as kernels prepare them: packed, widened or transposed weights, tables of trees.
    registry            The registry of kernels and shape rules, by (domain, operator, since_version), and of traits.
    rule_helpers        Helpers of shape rules: axes, broadcasting, elements of small tensors, and errors that name
                        what is wrong.
    shape_signatures    Signatures of input shapes, as text: to explain a failure, never asked before one.
    stored_operand      Operands that are not in memory: weights of a file, which kernels read window by window.
    traits              Traits: one row per operator with what the rest of the package asks of it, beside its kernel
                        and shape rule.
    window_geometry     The geometry that convolutions and pools share: padding, output sizes, and which input each
                        tap of a kernel reads.
"""
