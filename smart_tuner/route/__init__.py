"""ONE SETTING: the build route, the expression grammar, the enumerations of a sweep."""
