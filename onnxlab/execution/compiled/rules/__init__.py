"""How nodes become records, by operator: a table of rules, one file per family."""
