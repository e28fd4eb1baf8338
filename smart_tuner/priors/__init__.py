"""What earlier studies taught, as files that people can read, and what it says of a new study."""
