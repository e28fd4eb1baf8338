"""Other people's searches, and simple ones, to compare with; none is offered by ``tune``."""
