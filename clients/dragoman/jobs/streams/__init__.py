"""A job over streams: units dealt to several, taken up again where one breaks, results in order."""
