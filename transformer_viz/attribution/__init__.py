"""What each key counts for: measures of cause and of contribution, beside the weights of attention."""
