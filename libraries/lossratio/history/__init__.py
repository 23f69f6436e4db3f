"""The history of results: kept by `store`, searched for changes by `trend`, and shown by what else is here."""
