"""Neural networks: convolutions, pools, norms, activations, attention, recurrent layers, quantization.

Files:
    activation       Activation functions: rectifiers, sigmoids, GELU and its kin, Softmax, LogSoftmax, Hardmax, Clip.
    attention        Attention and what transformers put around it: Attention, RotaryEmbedding, LinearAttention,
                     CausalConvWithState.
    attention_rules  Shape rules of the attention operators of ai.onnx.
    conv             Convolutions of float tensors: Conv, ConvTranspose.
    conv_rules       Shape rules of what slides a window: Conv and its kin, pooling, and Resize, which scales the same
                     dims.
    norm             Normalizations: Batch-, Instance-, Group-, Layer-, RMS-, Lp- and MeanVarianceNormalization, LRN.
    norm_rules       Shape rules of normalizations with more than one output, dropout and quantization.
    pool             Pools: MaxPool, AveragePool, LpPool, their global forms, MaxUnpool.
    quantization     Quantization: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and the integer products
                     and convolutions.
    recurrent        Recurrent layers: RNN, GRU, LSTM.
    recurrent_rules  Shape rules of LSTM, GRU and RNN.
    state_rules      Shape rules of ONNX Runtime's operators that carry a state along a sequence: linear attention,
                     causal convolution.
"""
