"""Results: what they are (`model`), the words, pictures and pages that show them, and the files that hold them."""
