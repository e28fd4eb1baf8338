"""ONE ROUTE TRIED: built, validated, measured; every failure becomes an outcome here."""
