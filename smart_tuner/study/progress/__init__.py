"""How far a study is: its budget, its events and who works on it."""
