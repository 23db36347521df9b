"""Models that others trained, as what is exported: Hugging Face's, CTranslate2's, Argos' and Marian's."""
