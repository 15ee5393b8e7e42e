"""Networks of Caffe2 as text, to look at.

Files:
    graph     A network of Caffe2 as a GraphProto: its operators in the domain caffe2, what an init net fills as
              initializers.
    messages  The messages of Caffe2's networks, by field numbers, for protobuf's parser of text.
"""
