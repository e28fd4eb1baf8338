"""From what a study recorded to what it tells: small pure modules, typed frozen data, no drawing."""
