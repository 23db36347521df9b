"""The fourth stage: what the model is shown of each unit, fitted to it, one attempt after the other. Pure."""
