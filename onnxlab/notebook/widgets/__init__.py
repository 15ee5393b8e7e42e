"""The widget, the magics, what a cell's output holds, and exported pages.

Files:
    display     Outputs of cells: the widget for where a kernel runs, a picture and a text for where none does.
    html_page   A model as one HTML page that needs neither kernel nor network: it folds, searches and inspects.
    magic       `%onnx_show`, its completion, and bare ModelProtos that draw themselves: what `%load_ext onnxlab`
                adds.
    open_views  Open widgets by model.
    widget      The widget: a handful of synchronized traits, and a session to which every message goes.
"""
