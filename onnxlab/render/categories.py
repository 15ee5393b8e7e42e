"""Families of operators, for color: what people look for in a picture."""

_FAMILIES = {
    "convolution": ("Conv ConvTranspose ConvInteger QLinearConv DeformConv FusedConv Col2Im CausalConvWithState"),
    "matrix": (
        "MatMul Gemm Einsum MatMulInteger QLinearMatMul DynamicQuantizeMatMul Det Attention "
        "MultiHeadAttention LinearAttention FusedMatMul FusedGemm MatMulNBits GroupQueryAttention "
        "LinearRegressor LinearClassifier"
    ),
    "recurrent": "LSTM GRU RNN",
    "normalization": (
        "BatchNormalization InstanceNormalization LayerNormalization GroupNormalization LRN "
        "LpNormalization MeanVarianceNormalization RMSNormalization SkipLayerNormalization "
        "SimplifiedLayerNormalization Normalizer Scaler"
    ),
    "activation": (
        "Relu LeakyRelu PRelu Sigmoid HardSigmoid Tanh Elu Celu Selu Gelu Mish Softmax LogSoftmax "
        "Hardmax Softplus Softsign HardSwish Swish ThresholdedRelu Clip Erf Shrink BiasGelu "
        "FastGelu QuickGelu Dropout"
    ),
    "pooling": (
        "MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool MaxUnpool "
        "RoiAlign MaxRoiPool Resize Upsample GridSample AffineGrid"
    ),
    "reduction": (
        "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum "
        "ReduceLogSumExp ReduceSumSquare ArgMax ArgMin TopK CumSum CumProd"
    ),
    "shape": (
        "Reshape Transpose Squeeze Unsqueeze Flatten Concat Split Slice Gather GatherND "
        "GatherElements Scatter ScatterND ScatterElements Expand Tile Pad Shape Size DepthToSpace "
        "SpaceToDepth ReverseSequence Compress Trilu NonZero TensorScatter"
    ),
    "constant": (
        "Constant ConstantOfShape Range RandomNormal RandomUniform RandomNormalLike "
        "RandomUniformLike EyeLike Bernoulli Multinomial HannWindow HammingWindow BlackmanWindow "
        "MelWeightMatrix OneHot"
    ),
    "quantization": "QuantizeLinear DequantizeLinear DynamicQuantizeLinear",
    "control": "If Loop Scan SequenceMap Optional OptionalGetElement OptionalHasElement",
    "sequence": (
        "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
        "SplitToSequence ConcatFromSequence ZipMap DictVectorizer CastMap"
    ),
    "text": "StringConcat StringSplit StringNormalizer RegexFullMatch TfIdfVectorizer LabelEncoder",
    "tree": "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor SVMClassifier SVMRegressor",
    "signal": "STFT DFT ImageDecoder",
}
_CATEGORIES = {op_type: family for family, names in _FAMILIES.items() for op_type in names.split()}

CATEGORIES = (*_FAMILIES, "elementwise", "function", "custom")
"""Every name that `category` returns."""


def category(domain: str, op_type: str, is_function: bool = False) -> str:
    """Return the family of an operator.

    That is "function" for a call of the model's own, "custom" outside of ONNX's domains. Operators of ONNX
    that no family lists compute element by element.
    """
    if is_function:
        return "function"
    if family := _CATEGORIES.get(op_type):
        return family
    return "elementwise" if domain in ("", "ai.onnx", "ai.onnx.ml") else "custom"
