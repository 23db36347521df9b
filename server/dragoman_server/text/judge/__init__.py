"""The fifth stage: answers of the model are checked, put together and warned of. Pure."""
