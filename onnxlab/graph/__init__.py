"""The mutable graph model: protos as storage, an index beside them, edits as transactions.

- `modelgraph`: ModelGraph, what every other part works on
- `records`, `index`, `topology`: who makes and reads what, by id; orders
- `changes`: the primitive changes; `transaction`, `commits`, `history`, `sorting`, `validation`: edits made of them
- `handles`: what users hold of a node or value; `names`: how they look them up; `edits`: what they have done
- `queries`, `cones`: what they ask; `editing`, `querying`: both as methods of a Model; `properties`: live mappings
- `attributes`, `tensors`: protos to Python values and back
- `snapshot`: an immutable picture for runs; `networks`: the graph as networkx sees it
- `hierarchy`, `name_scopes`, `cuts`, `levels`: groups of nodes for the picture
"""
