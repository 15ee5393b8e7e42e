"""Pictures of a model that need no browser: text, SVG and HTML. Knows nothing of IPython."""
