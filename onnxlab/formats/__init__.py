"""Files to protos and back.

Files:
    arrays                NumPy's .npy and .npz files: read without trust, nothing larger than what is there, and
                          written without pickles.
    atomic                Replacing files as a whole or not at all: write beside the target, sync, rename, and take it
                          back where one fails.
    canonical             Whether protobuf writes a model's file as it stands, found out without its weights.
    external_data_copies  External data on its way into another folder, or out of files that hold more than the model
                          uses.
    foreign               Strings that are no UTF-8: readable while a model is open, and written back as the bytes
                          that they were.
    ge_stages             The stages of one graph in a folder of GE dumps.
    identify              Identify files that are no ONNX models: one sentence with the kind of file and what to do.
    kinds                 Kinds of files, by their names and by how they begin: what is written under a name, and what
                          it may replace.
    loading_line          A line that says what is being loaded: large files take a while, above all from disks far
                          away.
    onnx                  Reading model files of any format to a ModelProto, without the external data beside them.
                          `saving.py` writes.
    output                Files that are made of models, such as pictures and pages: written as a whole, over nothing
                          but their own kind.
    paths                 Paths as users give them, made absolute; what is no path of this machine is refused in plain
                          words.
    registry              The formats that files of models have: found by content, by suffix or by name. Each is a
                          module of `known/`.
    report                Differences between two messages, field by field: what a save is about to change in a file.
    saving                Writing model files with the external data beside them: all of it or nothing, and only what
                          changed.
    source                The source of a model: its file, the state that the file was in, the bytes as loaded.
    storage               Storage of a model's weights when it is saved: in the file, or in data files beside it.
    textual               Models as text for people: what `Model.to_text` returns.
    base/                 Formats of files and what several of them share.
    caffe2/               Networks of Caffe2 as text, to look at.
    glow/                 Models of Glow, written by the specification of ONNX.
    journals/             The crash journal of a model: its records, the files that hold them, and recovery from them.
    known/                Formats of files, one module each; `registry.py` finds them here.
    ort/                  ONNX Runtime's own formats on FlatBuffers: models (.ort), training checkpoints, and lists of
                          required operators.
    pt2/                  Archives of torch.export (.pt2), read without torch.
    weights/              Weights in files without a graph.
"""
