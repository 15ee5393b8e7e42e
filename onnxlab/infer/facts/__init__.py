"""Facts and protos: types to facts and back, symbols, facts of what a model stores and declares.

Files:
    constant_nodes    Facts of Constant nodes, straight from their attribute.
    fact_join         The join of two facts: what is true of a value that is described by either.
    ge_descriptors    Facts of the nodes of a GE dump: what their attributes say of their outputs.
    policy            The policy of inference about declared types and known elements.
    stored_constants  Facts of Constants from their serialized bytes, without a message: the same as
                      `types.fact_of_tensor` gives.
    symbols           Symbols for what inference cannot know: stable identities, readable names.
    type_encoding     Facts as serialized TypeProtos: written in a third of the time that it takes to fill messages
                      field by field.
    type_protos       TypeProto to fact and back; facts of tensors that a model stores.
    value_sources     Facts of values that no node makes: graph inputs, initializers; and what the model declares
                      about any value.
"""
