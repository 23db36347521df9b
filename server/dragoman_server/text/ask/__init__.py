"""The fourth stage: what the model is shown of each unit, one attempt after the other. Pure."""
