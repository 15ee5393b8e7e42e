"""Formats of files, one module each; `registry.py` finds them here.

Files:
    caffe2_net           A network of Caffe2 as protobuf text, to look at; the init net beside a predict net gives its
                         initializers.
    ge_dump              MindSpore's and Ascend's dumps of graphs, ge_onnx_*.pbtxt: protobuf text of ModelProtos that
                         mean something else.
    json_text            Protobuf's JSON of a model. It holds every field that onnx.proto has; unknown fields are
                         lost.
    npz_archive          NumPy's .npz archives: a model of initializers alone, read in place.
                         `model.files.save_weights` writes them.
    onnx_file            ONNX's own format: a ModelProto in protobuf's binary encoding. It holds everything.
    onnx_text            The language of onnx.parser, made for people: it has no place for much of a model.
    ort                  ORT format (.ort): models as ONNX Runtime keeps them for itself, on FlatBuffers.
    ort4                 ORT format in version 4, for ONNX Runtime before 1.13: without the types that choose kernels.
                         Written on request.
    protobuf_text        Protobuf's text format of a model. It holds every field that onnx.proto has; unknown fields
                         are lost.
    pt2_archive          torch.export's archive of a program: a graph of torch's operators to look at, without torch.
    safetensors_file     Weights as safetensors: a model of initializers alone, read in place.
                         `model.files.save_weights` writes them.
    standard_onnx        ONNX by its specification, on request: what a model in Glow's dialect computes, in operators
                         of ai.onnx.
    torchscript          TorchScript, a program of torch with code and pickles in it: only torch itself converts it,
                         where it is trusted.
    training_checkpoint  Training checkpoints of ONNX Runtime: a model of initializers alone, with the state of the
                         optimizer beside them.
"""
