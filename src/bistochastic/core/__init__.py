"""What every other part stands on: the verbs, the loop that stops, the errors."""
