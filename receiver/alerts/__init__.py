"""What a person must hear of: verdicts over readings, one alert a kind and key, told over channels."""
