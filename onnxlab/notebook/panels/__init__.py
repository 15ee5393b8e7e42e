"""Contents of the page's panels: inspector, tensors, palette, overlay, scene.

Files:
    attribute_columns  Attributes as columns: what every node has for a name, so that the page can search by any of
                       them.
    detections         Boxes that a detector found, read from its output: where they lie in the image that was fed,
                       score and class.
    ensembles          A tree ensemble as the page shows it: sizes, the use of features, and one tree as text.
    inspector          The inspector's view of a node or a value: typed attributes, both ends of every wire,
                       documentation.
    json_values        Values as JSON for the page: attributes, previews of tensors, summaries of what a run made.
    memory_curve       The memory of a run for some sizes of the dims, and the shapes that inputs and outputs get;
                       nothing is run.
    operator_docs      Operator documentation as text.
    overlay            Numbers of nodes that a view colors its boxes by: what Python gives, or what was measured of
                       the model.
    paired_nodes       A node of one model beside its partner of another: attributes, inputs with the numbers of
                       weights, outputs.
    pairing            Two models side by side: what the page is told of their difference, and of values that were
                       compared.
    palette            The palette: operators of the domains that a model imports, and the slots that a value may be
                       wired to.
    profile_table      A profile of one run as the page lists it: what each node took, did and moved, and who ran it.
    rewrites           Effects of rewriting for the page: rules with the nodes that go and come, their gains, near
                       misses.
    run_inputs         The inputs of a run that the page asked for: made up, all the same, typed, from files, or those
                       of the last run.
    scene              A model as the page draws it: the whole as strings and one Int32 buffer, and what each commit
                       changes.
    spectrograms       A row of a tensor as a spectrogram: the power of its frequencies, frame by frame.
    tensor_planes      Two axes of a tensor as the page shows them: cells of a grid, a heat map, an image.
    tensor_views       Views of a value's numbers: stored ones, pinned ones, those of the last run.
    watch_list         Watches as the page lists them: checked as of now, nothing is run.
"""
