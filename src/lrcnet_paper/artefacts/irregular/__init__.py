"""Tables and figure: irregularly sampled data; beyond the LRC paper."""
