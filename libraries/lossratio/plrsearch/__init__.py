"""PLRsearch: probabilistic loss ratio search (draft-vpolak-bmwg-plrsearch), with an exact posterior."""
