"""The widget, the magics, what a cell's output holds, and exported pages.

Files:
    bundle          The files of the widget that the build makes: its script, its styles, and the lines that load
                    them.
    bundled_widget  Widgets whose code the page asks for once: what views of one model and of two have in common.
    display         Outputs of cells: the widget for where a kernel runs, a picture and a text for where none does.
    documents       Files that JupyterLab opens in a tab of their own: what the tab asks of its kernel (widgets/lab/).
    html_page       A model as one HTML page that needs neither kernel nor network: it folds, searches and inspects.
    magic           `%onnx_show`, its completion, and bare ModelProtos that draw themselves: what `%load_ext onnxlab`
                    adds.
    open_views      Open widgets by model.
    pair_page       Two models side by side as one HTML page that needs neither kernel nor network.
    pair_widget     The widget of two models side by side: a difference, or a comparison of values.
    widget          The widget: a handful of synchronized traits, and a session to which every message goes.
"""
