"""HTTP: the APIs of LibreTranslate and DeepL, the contract as JSON, and the page. No gRPC."""
