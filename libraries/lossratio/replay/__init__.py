"""What a journal of trials says about another question than the one it was measured for."""
