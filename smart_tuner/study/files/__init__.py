"""What a study keeps, and how it is found, continued and joined."""
