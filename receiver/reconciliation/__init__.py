"""Asks the providers' payment APIs what callbacks did not tell, and shows where both sides differ."""
